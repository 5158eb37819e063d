"""Every error ioprism raises on purpose.

IoprismError
├── UsageError                   a setting or option makes no sense
│   ├── EndingError              no format that can be written has this ending
│   └── SeveralJobsError         the question is about one job, and several were given
├── RuleError                    a rule file cannot be used
│   └── ExpressionError          an expression of the rule language is wrong, and where
├── PluginError                  an installed plug-in cannot be loaded
├── TraceError                   the input is the problem
│   ├── NoSuchTraceError         there is no such file or folder
│   ├── UnknownFormatError       no reader recognises the file
│   ├── ReaderUnavailableError   a reader exists, its dependency is not installed
│   └── BrokenTraceError         the format is known, the content cannot be read
│       └── OverBudgetError      it would take more memory than its size justifies
├── OutputError                  the result cannot be written where it was asked for
│   └── RunFailedError           one run of a campaign failed; the others go on
├── ServiceError                 a running service cannot be reached, or does not know the answer
└── AnalysisError                the trace is fine, the question cannot be answered
    ├── NotEnoughDetailError     the trace lacks what the question needs
    │   └── FigureUnavailableError  the result lacks what the figure shows
    ├── CannotJudgeError         the log has no I/O, or what it had is lost
    ├── TooManyPiecesError       calls span more time buckets than can be meant
    ├── NotEnoughMemoryError     the answer needs more memory than it may use
    ├── SignalTooShortError      too few samples to speak of a period
    ├── BrokenSignalError        the samples are not a function of time
    └── MissingPackageError      the method asked for needs a package that is not installed

SignalWarning (a UserWarning): the samples are odd, the answer is given all the same.

A message says what (with the file), why (with values), and a hint that exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ioprism.text import name_of, printable


class IoprismError(Exception):
    """Base class: ``except IoprismError`` catches everything ioprism raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross process borders without calling the constructor again."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class UsageError(IoprismError):
    """A setting or option makes no sense."""


class EndingError(UsageError):
    """No format that can be written has the ending of this file name."""

    def __init__(self, target: Path, *, what: str, known: Sequence[str]) -> None:
        super().__init__(
            f"{printable(target.name)}: {what} are written as {' or '.join(known)}.\n"
            "Hint: give the file one of these endings."
        )


class SeveralJobsError(UsageError):
    """The question is about one job, and several were given."""

    def __init__(self, names: Sequence[str]) -> None:
        shown = ", ".join(printable(name) for name in names[:3])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        super().__init__(
            f"{len(names)} jobs were given ({shown}{more}), but the question is about one.\n"
            "Hint: give one of them; `ioprism insights` and `ioprism site add` judge many jobs, "
            "and --one-job (one_job=True in Python) is for a workflow."
        )


class RuleError(IoprismError):
    """A rule file cannot be used."""


class ExpressionError(RuleError):
    """An expression of the rule language is wrong; the message points at the place."""

    def __init__(self, problem: str, *, text: str, at: int, hint: str | None = None) -> None:
        shown, place = _excerpt(text, at)
        pointer = " " * place + "^"
        advice = f"\nHint: {hint}" if hint else ""
        super().__init__(f"column {at + 1}: {problem}.\n    {shown}\n    {pointer}{advice}")
        self.at = at


def _excerpt(text: str, at: int) -> tuple[str, int]:
    """Return the text around a place, harmless and on one line, and the place in it."""
    first = max(0, at - 60)
    before, after = printable(text[first:at]), printable(text[at : at + 40])
    return before + after, len(before)


class PluginError(IoprismError):
    """An installed plug-in cannot be loaded."""

    def __init__(self, name: str, *, group: str, package: str, why: Exception) -> None:
        super().__init__(
            f"the plug-in {name!r} ({group}) of {package} cannot be loaded: "
            f"{type(why).__name__}: {printable(str(why))}.\n"
            f"Hint: pip uninstall {package}, or bring it up to date."
        )


class TraceError(IoprismError):
    """The trace cannot be read."""

    def __init__(self, message: str, *, source: Path) -> None:
        super().__init__(f"{printable(name_of(source))}: {message}")
        self.source = source


class NoSuchTraceError(TraceError):
    """No file or folder has this name."""

    def __init__(self, source: Path) -> None:
        super().__init__(
            "no such file or folder.\nHint: check the spelling.",
            source=source,
        )


class UnknownFormatError(TraceError):
    """No reader recognises the content."""

    def __init__(
        self,
        source: Path,
        *,
        tried: Sequence[str],
        what: str = "this file",
        problem: str | None = None,
        hint: str = "`ioprism formats` lists what can be read; "
        "name the format yourself with --format if it is one of them.",
    ) -> None:
        super().__init__(
            f"{problem or f'no reader recognises {what}'}.\nHint: {hint}", source=source
        )
        self.tried = tuple(tried)


class ReaderUnavailableError(TraceError):
    """A reader for this format exists, but a package it needs is not installed."""

    def __init__(
        self, source: Path, *, reader: str, missing: str, install: str | None = None
    ) -> None:
        super().__init__(
            f"the {reader} reader needs the package {missing!r}, which is not installed.\n"
            f"Hint: pip install {install or missing}",
            source=source,
        )


class BrokenTraceError(TraceError):
    """The format is known, but nothing useful can be read from the content."""


class OverBudgetError(BrokenTraceError):
    """Reading this would take more memory than the size of the file justifies."""

    def __init__(self, source: Path, *, what: str, needed: int, allowed: int) -> None:
        super().__init__(
            f"{what} would take at least {needed / 2**20:,.3g} MiB of memory, but a file of this "
            f"size may take {allowed / 2**20:,.3g} MiB: it is damaged, or made to do harm.\n"
            f"Hint: if you trust it, use --reading-budget {-(-2 * needed // 10**9)}GB.",
            source=source,
        )


class OutputError(IoprismError):
    """The result cannot be written where it was asked for."""


class RunFailedError(OutputError):
    """One run of a sampling campaign failed: it was refused, took too long, or said nothing."""


class ServiceError(IoprismError):
    """A running service cannot be reached, or does not know the answer."""


class AnalysisError(IoprismError):
    """The trace is fine, but the question cannot be answered from it."""


class NotEnoughDetailError(AnalysisError):
    """The trace lacks what the question needs; the hint says what to record next time."""

    def __init__(self, *, needed: str, has: str, hint: str, source: str = "the trace") -> None:
        super().__init__(f"this needs {needed}, but {source} has {has}.\nHint: {hint}")


class FigureUnavailableError(NotEnoughDetailError):
    """The result lacks what the figure shows; the hint says how to get it."""

    def __init__(self, what: str, *, needs: str, hint: str) -> None:
        AnalysisError.__init__(self, f"{what} is not available: needs {needs}.\nHint: {hint}")


class CannotJudgeError(AnalysisError):
    """The log has no I/O, or what it had is lost: a verdict would be a guess."""

    def __init__(self, why: str, *, source: Path) -> None:
        super().__init__(
            f"{name_of(source)}: {why}\n"
            "Hint: record the job again, with a whole log; `ioprism record --check` shows how."
        )


class TooManyPiecesError(AnalysisError):
    """Calls span more time buckets than can be meant."""

    def __init__(self, pieces: float, bucket: float) -> None:
        super().__init__(
            f"the calls span {pieces:,.6g} time buckets of {bucket:g} s.\n"
            "Hint: choose longer buckets with --time-bucket."
        )


class NotEnoughMemoryError(AnalysisError):
    """The answer needs more memory than it may use."""

    def __init__(self, *, needed: int, allowed: int) -> None:
        super().__init__(
            f"this needs about {needed / 1e9:.1f} GB of memory, but may use only "
            f"{allowed / 1e9:.1f} GB.\n"
            f"Hint: give --memory-limit {-(-needed // 10**9)}GB, or use a longer --time-bucket."
        )


class SignalTooShortError(AnalysisError):
    """Too few samples to speak of a period."""

    def __init__(self, *, found: int, needed: int) -> None:
        super().__init__(
            f"the signal has {found} samples, but at least {needed} are needed.\n"
            "Hint: choose a higher --frequency or a longer time range."
        )


class BrokenSignalError(AnalysisError):
    """The samples are not a function of time: not finite, unsorted, or of unequal length."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the signal cannot be used: {reason}.\n"
            "Hint: give finite values at finite times in ascending order."
        )


class MissingPackageError(AnalysisError):
    """The method asked for needs a package that is not installed."""

    def __init__(self, *, needed_by: str, package: str, install: str) -> None:
        super().__init__(
            f"{needed_by} needs the package {package!r}, which is not installed.\n"
            f"Hint: pip install {install}"
        )


class SignalWarning(UserWarning):
    """The samples are odd; an answer is given all the same."""
