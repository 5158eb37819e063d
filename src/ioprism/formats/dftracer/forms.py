"""Forms that the lines of a file take, learnt from one piece and used for the next."""

from __future__ import annotations

from dataclasses import dataclass

from ioprism.formats.dftracer.chains import HASH_DIGITS, Chain, Step

MOST_TEMPLATES = 48  # of one stage, per number of fields; lines of rarer forms are odd
_FEWEST = 16  # lines of a piece that make a form worth a chain


@dataclass(frozen=True, slots=True)
class Run:
    """Text that all lines of a template share, up to a value that varies."""

    place: int  # the field with which it begins
    text: bytes
    varies: int | None  # the field whose value follows; None at the end of the line
    slot: str | None  # that field's key, if it is wanted
    value: bytes = b""  # the example's


@dataclass(frozen=True, slots=True)
class Template:
    """One form of line."""

    runs: tuple[Run, ...]
    shared: dict[str, bytes]
    closing: int  # braces at the end


class Forms:
    """What earlier pieces of the same file looked like, most frequent forms first."""

    def __init__(self) -> None:
        self._known: dict[int, list[Template]] = {}  # by number of fields
        self.chains: list[Chain] = []

    def of(self, count: int) -> list[Template]:
        """The templates to try first."""
        return self._known.get(count, [])

    def learn(self, count: int, used: list[tuple[int, Template]]) -> None:
        """Remember how many lines each template had in the last piece."""
        ranked = sorted(used, key=lambda pair: pair[0], reverse=True)
        self._known[count] = [template for lines, template in ranked if lines][:MOST_TEMPLATES]
        frequent = [_chain(template) for lines, template in ranked if lines >= _FEWEST]
        self.chains = [*self.chains, *filter(None, frequent)][:MOST_TEMPLATES]


def _chain(template: Template) -> Chain | None:
    """The template as a chain; None if a value that varies is no number and no hash."""
    steps: list[Step] = []
    before = b"{"  # what stands between the last value and the next text
    for run in template.runs:
        if run.varies is None:
            return Chain(tuple(steps), before + run.text, template.shared) if steps else None
        bare = run.value.strip(b'"')
        quote = b'"' if run.value[:1] == b'"' else b""
        is_hash = run.slot == "fhash"
        if is_hash and (len(bare) != HASH_DIGITS or not quote):
            return None
        if not is_hash and not bare.removeprefix(b"-").isdigit():
            return None
        # Time stamps have as many digits in every line.
        width = len(bare) if run.slot == "ts" and 8 < len(bare) <= 16 else 0
        steps.append(Step(before + run.text + quote, run.slot, is_hash, width))
        before = quote + b","
    return Chain(tuple(steps), before[:-1] + b"}" * template.closing, template.shared)
