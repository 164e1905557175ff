"""What a run may spend between two questions: tokens, calls, and failures in a row (D5, D6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .guards import by_repeats
from .loop import Act, at_least_one
from .records import Action, Ask, Call, Entry, Note, Reply, Result, Stop
from .run import Run


@dataclass(frozen=True)
class Budget:
    """Tokens, calls and failures in a row are counted; where they are used up, no more is spent and the best answer is given."""

    tokens: int | None = None  # D6: of all requests and replies since the question, the provider's count where there is one
    calls: int | None = None  # since the question, run or not
    calls_per_turn: int = 64  # one reply can ask for any number
    failures: int = 10  # D5: turns in a row in which every call failed; a cap of 8 requests comes first

    def __post_init__(self) -> None:
        for name in ("tokens", "calls", "calls_per_turn", "failures"):
            if (value := getattr(self, name)) is not None or name in ("calls_per_turn", "failures"):
                at_least_one(f"Budget({name}={value!r})", value)

    async def __call__(self, run: Run, action: Action, act: Act) -> Entry:
        if isinstance(action, Call):
            return self._over(run, action) or await act(run, action)
        if why := self._spent(run, action):
            return Stop("over_budget", why, (Note("Budget", why),))
        if why := "" if action.last else self._failing(run):
            return Stop("stuck", why, (Note("Budget", why),))
        entry = await act(run, action)
        if self.tokens is None or not isinstance(entry, Reply):
            return entry
        now = run.plus(entry).spent  # an answer that is paid for is given, whatever it cost
        if now <= self.tokens:
            return entry
        return replace(entry, notes=(*entry.notes, Note("Budget", f"{now:,} of {self.tokens:,} tokens are spent")))

    def _spent(self, run: Run, ask: Ask) -> str:
        """Why this request is not made. The last one, without tools, must still be possible after it: with the history as much
        longer as it has just grown."""
        if self.tokens is None:
            return ""
        from . import tokens

        history = run.carried + tokens.AROUND_REPLY
        needed = history
        if not ask.last:
            needed += tokens.count_same(ask.tools or ()) + history + run.carried - run.carried_before
        if run.spent + needed <= self.tokens:
            return ""
        return f"{run.spent:,} of {self.tokens:,} tokens are spent, and the next requests would take at least {needed:,} more"

    def _over(self, run: Run, call: Call) -> Result | None:
        before, place = run.place(call.id)
        if self.calls is not None and before + place >= self.calls:
            why = f"the budget of {self.calls} call{'s' * (self.calls != 1)} is used up"
            advice = "Answer from the results that you have"
        elif place >= self.calls_per_turn:
            why = f"only {self.calls_per_turn} call{'s' * (self.calls_per_turn != 1)} of one turn are run"
            advice = "Ask for the rest in your next reply, if you still need it"
        else:
            return None
        return Result(call.id, f"{call.name} was not run: {why}. {advice}.", error=True, notes=(Note("Budget", why),))

    def _failing(self, run: Run) -> str:
        last = run.turns(self.failures)
        if len(last) < self.failures or not all(reply.calls for reply in last):
            return ""
        results = [run.result(call.id) for reply in last for call in reply.calls]
        failed = all(result is not None and result.error and not by_repeats(result) for result in results)
        return f"every call of the last {self.failures} turns failed" if failed else ""
