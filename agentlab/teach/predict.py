"""Commit to a guess before the run; compare it with the fact afterwards.

A guess that was never written down is always right in hindsight. The question appears as radio buttons where a person can
click, and as plain text everywhere; `lab.predict("id", answer="b")` records a guess in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from agentlab.teach.progress import Text, book, person_here


@dataclass(frozen=True)
class Question:
    """One question and its options, by letter."""

    id: str
    text: str
    options: dict[str, str] = field(default_factory=dict)

    def letter(self, answer: object) -> str | None:
        """The option that `answer` means, given as its letter or as its text; None when there is no such option."""
        said = str(answer).strip()
        if said.lower() in self.options:
            return said.lower()
        return next((key for key, text in self.options.items() if text == said), None)

    def named(self, answer: str) -> str:
        return f"{answer}) {self.options[answer]}" if answer in self.options else answer


asked: dict[str, Question] = {}


def predict(
    id: str, question: str = "", options: Mapping[str, str] | Sequence[object] = (), *, answer: object = None
) -> Text | None:
    """Ask for a guess, or record one: `lab.predict("q1", "How many?", ["1", "2"])`, `lab.predict("q1", answer="b")`."""
    if question:
        asked[id] = Question(id, question, lettered(options))
    known = asked.get(id, Question(id, ""))
    if answer is not None:
        return record(known, answer)
    if not question:
        return Text(f"There is no question {id!r} yet. Run the cell that asks it first.", "warn")
    if person_here() and show_buttons(known):
        return None
    return Text(plain(known))


def reveal(id: str, fact: object, why: str = "") -> Text:
    """Compare the guess with the fact. `fact` comes from the run: an option's letter, its text, or any other value."""
    known = asked.get(id, Question(id, ""))
    letter = known.letter(fact)
    came = known.named(letter) if letter else str(fact)
    book.load()
    guess = book.guesses.get(id)
    book.revealed(id, letter or str(fact))
    ending = f"\n{why}" if why else ""
    if guess is None:
        return Text(f"It was: {came}.\nYou made no guess. Guess first next time: it is what makes this stick.{ending}", "warn")
    if guess == (letter or str(fact)):
        return Text(f"You said {known.named(guess)}. So it was.{ending}", "good")
    return Text(f"You said {known.named(guess)}. It was: {came}.{ending}", "warn")


def lettered(options: Mapping[str, str] | Sequence[object]) -> dict[str, str]:
    if isinstance(options, Mapping):
        return {str(key).lower(): str(text) for key, text in options.items()}
    return {chr(ord("a") + place): str(text) for place, text in enumerate(options)}


def record(question: Question, answer: object) -> Text:
    if not question.options:
        book.guessed(question.id, str(answer).strip())
        return Text(f"Noted for {question.id}: {answer}.")
    letter = question.letter(answer)
    if letter is None:
        return Text(f"{question.id} has no option {answer!r}. Choose one of: {', '.join(question.options)}.", "warn")
    book.guessed(question.id, letter)
    return Text(f"Noted: {question.named(letter)}. Now let us see.")


def plain(question: Question) -> str:
    """The question as text: what a headless run, a screen reader and a saved notebook show."""
    lines = [question.text, *(f"  {key}) {text}" for key, text in question.options.items())]
    letter = next(iter(question.options), "...")
    guess = book.guesses.get(question.id)
    if guess:
        lines.append(f"You said {question.named(guess)}.")
    lines.append(f'Commit to one:  lab.predict("{question.id}", answer="{letter}")')
    return "\n".join(lines)


def show_buttons(question: Question) -> bool:
    """Radio buttons and a Commit button; False where there are no widgets."""
    try:
        import ipywidgets as widgets
        from IPython.display import display
    except ImportError:
        return False
    book.load()
    texts = [question.named(key) for key in question.options]
    guess = book.guesses.get(question.id)
    radio = widgets.RadioButtons(
        options=texts,
        value=question.named(guess) if guess in question.options else None,
        layout=widgets.Layout(width="auto"),
        tooltip=question.text,  # what a screen reader says of the group
    )
    commit = widgets.Button(
        description="Commit to this guess",
        layout=widgets.Layout(width="auto", align_self="flex-start"),
        disabled=radio.value is None,
    )
    said = widgets.Label(value=f"You said {question.named(guess)}." if guess else "Choose one, then commit.")

    def chosen(change: Any) -> None:
        commit.disabled = radio.value is None

    def committed(button: Any) -> None:
        letter = question.letter(str(radio.value).split(")")[0])
        if letter is not None:
            book.guessed(question.id, letter)
            said.value = f"Noted: {question.named(letter)}. Now let us see."

    radio.observe(chosen, names="value")
    commit.on_click(committed)
    title = widgets.HTML(f"<b>{escape(question.text)}</b>")
    box = widgets.VBox([title, radio, commit, said])
    bundle: dict[str, Any] = dict(box._repr_mimebundle_() or {})
    # The twins stand in the same output: a reopened notebook and a screen reader get the question, not a widget's name.
    bundle["text/plain"] = plain(question)
    bundle["text/html"] = Text(plain(question))._repr_html_()
    display(bundle, raw=True)  # type: ignore[no-untyped-call]
    return True
