"""How the file system's storage targets are used."""

from __future__ import annotations

from ioprism.diagnosis.evidence import Evidence
from ioprism.diagnosis.limits import MAJORITY, NEARLY_ALL
from ioprism.diagnosis.rules.rule import WHOLE_JOB, Answer, Hit, Rule, Unknown, share, worst
from ioprism.diagnosis.target_balance import TargetUse, slow_target, target_use
from ioprism.model.verdict import Severity, Subject

LAYOUTS = "stripe layouts: a Lustre file system and Darshan's LUSTRE module"
SERVERS = "counters of the file-system servers: `ioprism insights --servers STORE`"
CLOCK = "when the job ran, by the clock, to ask the servers about that time"


def _use(evidence: Evidence) -> TargetUse | Unknown | None:
    if not any(evidence.moved.values()):
        return None
    return target_use(evidence) or Unknown(LAYOUTS)


def single_target(evidence: Evidence) -> Answer:
    """Several ranks move most of the data to or from one storage target."""
    use = _use(evidence)
    if not isinstance(use, TargetUse) or evidence.ranks < 2:
        return use if isinstance(use, Unknown) else None
    busiest = max(use.bytes, key=lambda target: use.bytes[target])
    part = use.bytes[busiest] / use.total
    if part <= evidence.thresholds.target_share or use.bytes[busiest] < _enough(evidence):
        return None
    numbers = {"target": busiest, "bytes": use.bytes[busiest], "share": part}
    subject = Subject("target", str(busiest))
    return Hit(numbers, use.seconds, _details(use), subject, files=_on(busiest, use, evidence))


def _on(target: int, use: TargetUse, evidence: Evidence) -> list[int]:
    """The files with stripes on a target."""
    return [file for file in use.files if target in evidence.files.striping[file].targets]


def _enough(evidence: Evidence) -> float:
    return evidence.thresholds.imbalance_bytes


def target_imbalance(evidence: Evidence) -> Answer:
    """Of the targets used by several ranks concurrently, some take far more bytes than others."""
    use = _use(evidence)
    if not isinstance(use, TargetUse) or len(use.bytes) < 2 or evidence.ranks < 2:
        return use if isinstance(use, Unknown) else None
    if isinstance(single_target(evidence), Hit):
        return None  # that one target takes nearly everything says it all
    most = max(use.bytes.values())
    mean = use.total / len(use.bytes)
    imbalance = 1 - mean / most
    if imbalance <= evidence.thresholds.target_imbalance or most < _enough(evidence):
        return None
    numbers = {
        "targets": len(use.bytes),
        "most_bytes": most,
        "mean_bytes": mean,
        "imbalance": imbalance,
    }
    return Hit(numbers, use.seconds * imbalance, _details(use), files=use.files)


def slow(evidence: Evidence) -> Answer:
    """One storage target takes far longer than the others for the same work."""
    use = _use(evidence)
    if not isinstance(use, TargetUse) or evidence.ranks < 2:
        return use if isinstance(use, Unknown) else None
    limits = evidence.thresholds
    target = slow_target(evidence, factor=limits.slow_target_factor)
    if target is None or target.excess < limits.imbalance_seconds:
        return None
    numbers = {
        "target": target.target,
        "others": target.peers,
        "factor": target.peers_rate / target.rate,
        "rate": target.rate,
        "peers_rate": target.peers_rate,
    }
    subject = Subject("target", str(target.target))
    words = {"target": str(target.target)}
    return Hit(numbers, target.excess, _details(use), subject, files=target.files, words=words)


def contention(evidence: Evidence) -> Answer:
    """Very many ranks of the job itself share each storage target, and none of these is slow.

    Wider stripes would only spread the harm of a slow one.
    """
    use = _use(evidence)
    if not isinstance(use, TargetUse):
        return use
    if slow_target(evidence, factor=evidence.thresholds.slow_target_factor) is not None:
        return None
    crowd = max(use.ranks.values(), default=0)
    if crowd <= evidence.thresholds.target_ranks:
        return None
    busiest = max(use.ranks, key=lambda target: use.ranks[target])
    numbers = {"ranks": crowd, "targets": len(use.bytes)}
    return Hit(
        numbers,
        use.seconds,
        _details(use),
        Subject("target", str(busiest)),
        files=_on(busiest, use, evidence),
    )


def background_load(evidence: Evidence) -> Answer:
    """Other jobs keep the servers busy while this one runs."""
    if not any(evidence.moved.values()):
        return None
    seen = evidence.background_load
    if seen is None:
        timed = evidence.job.start_time is not None and evidence.job.end_time is not None
        return Unknown(SERVERS if timed else CLOCK)
    if seen.coverage < NEARLY_ALL:
        return Unknown(f"counters of all the job's time; the store covers {seen.coverage:.0%}")
    if seen.bytes < MAJORITY * evidence.moved["write"]:
        return Unknown("the servers of the job's file system; those of the store moved less")
    own = sum(evidence.moved.values())
    others = max(0.0, seen.bytes - own)
    part = share(others, seen.most_bytes)
    if part <= evidence.thresholds.others_load:
        return None
    usages = [evidence.usages[layer] for layer in evidence.base_layers]
    waited = sum(evidence.held_up(usage, usage.seconds) for usage in usages)
    numbers = {"others_bytes": others, "own_bytes": own, "share": part, "servers": seen.servers,
               "seconds": seen.seconds}  # fmt: skip
    return Hit(numbers, waited * part)


def _details(use: TargetUse) -> list[dict[str, object]]:
    return [
        {
            "target": target,
            "bytes": use.bytes[target],
            "share": use.bytes[target] / use.total,
            "ranks": use.ranks.get(target),
        }
        for target in worst(use.bytes)
    ]


RULES = (
    Rule("single-target", Severity.WARN, "posix", single_target, "single-target",
         ("target_share", "imbalance_bytes")),
    Rule("slow-target", Severity.HIGH, "posix", slow, "slow-target",
         ("slow_target_factor", "imbalance_seconds")),
    Rule("target-imbalance", Severity.WARN, "posix", target_imbalance, "target-imbalance",
         ("target_imbalance", "imbalance_bytes")),
    Rule("target-contention", Severity.WARN, "posix", contention, "target-contention",
         ("target_ranks",)),
    Rule("file-system-weather", Severity.WARN, "posix", background_load, "file-system-weather",
         ("others_load",), calls=WHOLE_JOB),
)  # fmt: skip
