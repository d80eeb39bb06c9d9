"""One model at many tables at once: a back end that answers a whole batch of waiting games.

Here: writing answers with a model (`LocalWriter`), the back end between agents and a writer (`Tables`),
which plays games in step. Not here: games, agents, what is learned of the answers.

Agents ask a back end and wait for its answer, so every game has a thread of its own; whenever all of them
wait, all are answered together. So a model plays through the very code that it plays through in rooms.

Contract: the ids of an answer are those that were drawn, never tokenized again. A request's own seed
draws its answer, so who else is in the batch changes nothing but the last bits of a score.
"""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from transformers import DynamicCache

from agents.backends import BackendConfig, ChatReply, ChatRequest, OnText
from agents.inference.checkpoint import spelled_calls, without_calls
from markets.engine.seeds import derive_seed
from training.language import attention, base, forms
from training.language.config import Sampling
from training.language.memory import Memory

T = TypeVar("T")

KEPT_SHARE = 0.75
"""Answers still being written, of those carried along, at which the others are left out."""
MOST_REMEMBERED = 128
"""Prompts that a writer remembers: 16 MB each with the embedded model."""

BACKEND = "in-training"
"""Name of the back end that a model in training is."""


class Question(NamedTuple):
    """One prompt and how its answer is drawn."""

    prompt: list[int]
    temperature: float
    seed: int
    longest: int
    grammar: str = ""
    """The answer is held to this grammar (`forms`); not for answers that are learned from."""


class Written(NamedTuple):
    """An answer."""

    ids: list[int]
    """Ends with the stop token unless it was too long."""
    logprobs: list[float]
    """Of each id, under the distribution that it was drawn from."""


class Asked(NamedTuple):
    """A question and its answer, as training needs them."""

    prompt: list[int]
    answer: Written


class Writer(Protocol):
    """Whatever writes answers."""

    def write(self, questions: Sequence[Question]) -> list[Written]:
        """An answer to each."""
        ...


class LocalWriter:
    """A model of this process; one that `remembers` reads of a prompt only what its game has added, for as long as
    the weights stay as they are."""

    def __init__(self, model: Any, tokenizer: Any, *, together: int, remembers: bool = False) -> None:
        self._model = model
        self._stop = tokenizer.eos_token_id
        self._pad = tokenizer.pad_token_id
        self._together = together
        self._tokenizer = tokenizer
        self._words: forms.Words | None = None
        """The text of every token, for answers in a form."""
        self._memory = Memory(model, most=MOST_REMEMBERED) if remembers else None

    @torch.no_grad()
    def write(self, questions: Sequence[Question]) -> list[Written]:
        """Answers in batches of like length."""
        was_training = self._model.training
        self._model.eval()
        order = sorted(range(len(questions)), key=lambda k: len(questions[k].prompt))
        answers: dict[int, Written] = {}
        for start in range(0, len(order), self._together):
            some = order[start : start + self._together]
            with attention.writing(self._model):
                answers |= dict(zip(some, self._batch([questions[k] for k in some]), strict=True))
        self._model.train(was_training)
        return [answers[k] for k in range(len(questions))]

    def _batch(self, questions: Sequence[Question]) -> list[Written]:
        """Answers to questions that are written token by token side by side. Whoever is done is carried along until a
        quarter is, for leaving it out copies what all others have read."""
        device = self._model.device
        lengths = torch.tensor([len(question.prompt) for question in questions], device=device)
        width = int(lengths.max())
        mask = (torch.arange(width, device=device)[None] >= width - lengths[:, None]).long()
        cache, scores = self._read(questions, mask)
        positions = lengths[:, None]
        draws = [random.Random(question.seed) for question in questions]
        written = [Written([], []) for _ in questions]
        held, done = list(range(len(questions))), [False] * len(questions)
        while True:
            tokens, logprobs = _drawn(
                scores,
                temperatures=[questions[row].temperature for row in held],
                chances=[0.0 if done[row] else draws[row].random() for row in held],
            )
            for place, token in self._formed(scores, questions, written, draws, held=held, done=done):
                tokens[place] = token
            for place, row in enumerate(held):
                if done[row]:
                    continue
                written[row].ids.append(tokens[place])
                written[row].logprobs.append(logprobs[place])
                done[row] = tokens[place] == self._stop or len(written[row].ids) >= questions[row].longest
            kept = [place for place, row in enumerate(held) if not done[row]]
            if not kept:
                return written
            if len(kept) <= KEPT_SHARE * len(held):
                index = torch.tensor(kept, device=device)
                cache.batch_select_indices(index)
                mask, positions = mask[index], positions[index]
                tokens, held = [tokens[place] for place in kept], [held[place] for place in kept]
            mask = torch.cat([mask, mask.new_ones(len(held), 1)], dim=1)
            output = self._model(
                input_ids=torch.tensor(tokens, device=device)[:, None],
                attention_mask=mask,
                position_ids=positions,
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            scores, positions = output.logits[:, -1], positions + 1

    def _read(self, questions: Sequence[Question], mask: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """What is kept of the prompts, the shorter ones with room on their left, and the scores of what comes next."""
        if self._memory is not None:
            return self._memory.read([question.prompt for question in questions])
        width = mask.shape[1]
        cache: Any = DynamicCache(config=self._model.config)
        output = self._model(
            input_ids=torch.tensor(
                [[self._pad] * (width - len(q.prompt)) + q.prompt for q in questions], device=mask.device
            ),
            attention_mask=mask,
            position_ids=(mask.cumsum(dim=1) - 1).clamp(min=0),
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return cache, output.logits[:, -1]

    def _formed(
        self,
        scores: torch.Tensor,
        questions: Sequence[Question],
        written: Sequence[Written],
        draws: Sequence[random.Random],
        *,
        held: Sequence[int],
        done: Sequence[bool],
    ) -> list[tuple[int, int]]:
        """The next token at each place whose answer is held to a form."""
        places = [place for place, row in enumerate(held) if questions[row].grammar and not done[row]]
        if not places:
            return []
        self._words = self._words or forms.words_of(self._tokenizer)
        rows = [held[place] for place in places]
        order = forms.ranked(
            scores[places],
            temperatures=[questions[row].temperature for row in rows],
            chances=[draws[row] for row in rows],
        )
        return [
            (
                place,
                forms.next_token(
                    order,
                    k,
                    form=forms.Form(questions[row].grammar),
                    text="".join(self._words.texts[token] for token in written[row].ids),
                    words=self._words,
                    stop=self._stop,
                ),
            )
            for k, (place, row) in enumerate(zip(places, rows, strict=True))
        ]


def _drawn(
    scores: torch.Tensor, *, temperatures: Sequence[float], chances: Sequence[float]
) -> tuple[list[int], list[float]]:
    """The next token of each row, where its chance in [0, 1) falls, and its log-probability; at temperature 0 the
    likeliest."""
    scale = torch.tensor([temperature or 1.0 for temperature in temperatures], device=scores.device)
    logprobs = torch.log_softmax(scores.float() / scale[:, None], dim=-1)  # (B, V)
    reached = logprobs.double().exp().cumsum(dim=-1)
    at = torch.tensor(chances, dtype=torch.float64, device=scores.device)[:, None] * reached[:, -1:]
    drawn = torch.searchsorted(reached, at, right=True).clamp(max=scores.shape[1] - 1)[:, 0]
    greedy = torch.tensor([temperature <= 0 for temperature in temperatures], device=scores.device)
    tokens = torch.where(greedy, logprobs.argmax(dim=-1), drawn)
    return tokens.tolist(), logprobs.gather(1, tokens[:, None])[:, 0].tolist()


class _Ticket:
    """A request that waits."""

    def __init__(self, place: int, question: Question, tools: bool) -> None:
        self.place = place
        self.question = question
        self.tools = tools
        self.reply: ChatReply | None = None
        self.failed = False


class Tables:
    """A back end for games in step; register it with `agents.backends.seat`."""

    def __init__(
        self, writer: Writer, tokenizer: Any, sampling: Sampling, *, name: str = BACKEND, grammar: bool = False
    ) -> None:
        self.config = BackendConfig(name=name, url="local://", model=name, grammar=grammar)
        self._writer = writer
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._playing = 0
        self._own = threading.local()
        self._asked: dict[int, list[Asked]] = {}
        self._broken = False
        self._salts: Sequence[int] = ()

    def chat(self, request: ChatRequest, *, on_text: OnText | None = None) -> ChatReply:
        """The answer, once every other game waits too."""
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        prompt = base.prompt_ids(self._tokenizer, messages, request.tools)
        place = self._own.place
        seed = derive_seed("answer", request.seed or 0, self._salts[place]) if self._salts else request.seed or 0
        longest = min(request.max_tokens, self._sampling.longest)
        question = Question(
            prompt, request.temperature, seed % 2**63, longest, request.grammar if self.config.grammar else ""
        )
        ticket = _Ticket(place, question, bool(request.tools))
        with self._changed:
            self._waiting.append(ticket)
            self._changed.notify_all()
            self._changed.wait_for(lambda: ticket.reply is not None or ticket.failed)
        if ticket.reply is None:
            raise _Abandoned
        return ticket.reply

    def play(self, games: Sequence[Callable[[], T]], salts: Sequence[int] = ()) -> list[tuple[T, list[Asked]]]:
        """Play every game to its end; with each what was asked in it, in order. Of games with one scenario, those
        with different salts draw different answers."""
        results: dict[int, tuple[T, list[Asked]]] = {}
        left = iter(range(len(games)))
        self._asked, self._broken, self._salts = {}, False, salts

        def work() -> None:
            fine = False
            try:
                while not self._broken:
                    with self._changed:
                        place = next(left, None)
                    if place is None:
                        break
                    self._own.place = place
                    results[place] = games[place](), self._asked.pop(place, [])
                fine = True
            finally:
                with self._changed:
                    self._broken = self._broken or not fine
                    self._playing -= 1
                    self._changed.notify_all()

        self._playing = min(len(games), self._sampling.together)
        with ThreadPoolExecutor(max(1, self._playing)) as pool:
            workers = [pool.submit(work) for _ in range(self._playing)]
            self._answer_all()
        for worker in workers:
            worker.result()
        return [results[place] for place in range(len(games))]

    def _answer_all(self) -> None:
        """Answer whenever everybody waits, until nobody plays."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._waiting) == self._playing)
                if not self._playing:
                    return
                tickets, self._waiting = sorted(self._waiting, key=lambda ticket: ticket.place), []
            answers: list[Written] = []
            try:
                answers = self._writer.write([ticket.question for ticket in tickets])
            finally:  # Where the writer failed, whoever waits is let go.
                with self._changed:
                    for ticket, answer in zip(tickets, answers, strict=False):
                        self._asked.setdefault(ticket.place, []).append(Asked(ticket.question.prompt, answer))
                        ticket.reply = self._reply(ticket, answer)
                    for ticket in tickets:
                        ticket.failed = ticket.reply is None
                    self._changed.notify_all()

    def _reply(self, ticket: _Ticket, answer: Written) -> ChatReply:
        ended = bool(answer.ids) and answer.ids[-1] == self._tokenizer.eos_token_id
        text = self._tokenizer.decode(answer.ids, skip_special_tokens=False)
        if ended:
            text = text.removesuffix(self._tokenizer.eos_token)
        calls = spelled_calls(text) if ticket.tools else ()
        return ChatReply(
            text=without_calls(text) if calls else text,
            tool_calls=tuple(calls),
            finish_reason="stop" if ended else "length",
            model=self.config.model,
            input_tokens=len(ticket.question.prompt),
            output_tokens=len(answer.ids),
        )


class _Abandoned(RuntimeError):
    """The writer failed; whoever asked it reports why."""
