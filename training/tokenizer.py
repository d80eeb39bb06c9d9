"""Words to ids and back, and the proof that a tokenizer, its template and its stop token fit.

Here: the word-level tokenizer that is saved with every model trained from scratch, the ids and
loss mask of a dialogue, and `check`, without which no run starts. Not here: the words themselves
(`agents.learned.dialogue`, `ledger`).

Contract: one word, one id. A dialogue's ids are the concatenation of its messages' ids, so what
was generated is never tokenized again; the mask is 1 on what the learner wrote and on the end
marker of its message, and 0 everywhere else.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agents.learned import grammars
from agents.learned.dialogue import ASSISTANT, END, PAD, SYSTEM, UNKNOWN, USER, Message
from agents.learned.grammars import LADDER, Grammar

ROLE_TOKENS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message.role == 'assistant' %}"
    "<|assistant|> {% generation %}{{ message.content }} <|end|>{% endgeneration %} "
    "{% else %}"
    "<|{{ message.role }}|> {{ message.content }} <|end|> "
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


class SetupError(RuntimeError):
    """A model, tokenizer or template that would train on the wrong tokens; the run must not start."""


def build(grammar: Grammar = LADDER) -> Any:
    """The tokenizer of a compact dialogue."""
    words = {word: number for number, word in enumerate(grammar.words)}
    core = Tokenizer(models.WordLevel(words, unk_token=UNKNOWN))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: Any = PreTrainedTokenizerFast  # Its types do not cover its constructor.
    tokenizer = fast(
        tokenizer_object=core,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


class Codec:
    """Ids of messages, and words of ids, for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._id_of = tokenizer.get_vocab()
        self._word_of = {number: word for word, number in self._id_of.items()}
        self.pad = self._id_of[PAD]
        self.end = self._id_of[END]
        self.turn_start = (self._id_of[ASSISTANT],)
        self.grammar = grammar_of(tokenizer)

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids of words, all of which must be known."""
        return [self._id_of[word] for word in words]

    def words(self, ids: Iterable[int]) -> list[str]:
        """Words of ids."""
        return [self._word_of[number] for number in ids]

    def shown(self, messages: Iterable[Message]) -> list[int]:
        """Ids of messages that the learner reads, up to where its answer starts."""
        ids: list[int] = []
        for message in messages:
            ids += [self._id_of[ROLE_TOKENS[message.role]], *self.ids(message.words), self.end]
        return [*ids, *self.turn_start]

    def answer(self, ids: Sequence[int]) -> list[str] | None:
        """The words of a generated answer; None unless it came to its end marker."""
        if not ids or ids[-1] != self.end:
            return None
        return self.words(ids[:-1])

    def whole(self, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
        """(ids, mask) of a finished dialogue; the mask is 1 on the learner's words and end markers."""
        ids: list[int] = []
        mask: list[int] = []
        for message in messages:
            own = [*self.ids(message.words), self.end]
            ids += [self._id_of[ROLE_TOKENS[message.role]], *own]
            mask += [0, *([int(message.role == "assistant")] * len(own))]
        return ids, mask


def check(tokenizer: Any, model: Any) -> None:
    """Raise `SetupError` unless template, mask, padding and stop token are the ones we train on."""
    vocab = tokenizer.get_vocab()
    grammar = grammar_of(tokenizer)
    split = [word for word in grammar.words if tokenizer.encode(word, add_special_tokens=False) != [vocab[word]]]
    if split:
        raise SetupError(f"These words are not one token each: {', '.join(split[:5])}.")
    if tokenizer.eos_token != END:
        raise SetupError(f"The stop token is {tokenizer.eos_token!r}, not {END!r}.")
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        raise SetupError("Padding needs a token of its own: with the stop token as padding it would not be trained.")
    stops = model.generation_config.eos_token_id
    if vocab[END] not in (stops if isinstance(stops, list) else [stops]):
        raise SetupError(f"The model stops at {stops!r}, not at {END!r} ({vocab[END]}).")
    embeddings = model.get_input_embeddings()
    if embeddings.weight.shape[0] <= max(vocab.values()):
        raise SetupError(f"The model has {embeddings.weight.shape[0]} embeddings, too few for the tokenizer.")
    _check_template(tokenizer, grammar.sample)


def grammar_of(tokenizer: Any) -> Grammar:
    """The dialogue that a tokenizer is for. Raises `SetupError`."""
    vocab = tokenizer.get_vocab()
    found = grammars.of_words(vocab)
    if found is None:
        near = min(grammars.ALL, key=lambda each: len(set(each.words) - set(vocab)))
        missing = [word for word in near.words if word not in vocab]
        unknown = f"does not know {', '.join(missing[:5])}" if missing else "knows words that the dialogue has not"
        raise SetupError(f"The tokenizer {unknown}.")
    return found


def _check_template(tokenizer: Any, sample: Sequence[Message]) -> None:
    codec = Codec(tokenizer)
    chat = [{"role": message.role, "content": message.content} for message in sample]
    rendered = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    ids, mask = codec.whole(sample)
    if list(rendered["input_ids"]) != ids:
        raise SetupError("The chat template renders a dialogue into other ids than the ones that are generated.")
    if not any(rendered["assistant_masks"]):
        raise SetupError("The chat template marks nothing as written by the learner: it needs {% generation %}.")
    if list(rendered["assistant_masks"]) != mask:
        raise SetupError("The chat template's mask is not the learner's words and their end markers.")
    for cut in (2, 4):
        prompt = tokenizer.apply_chat_template(chat[:cut], tokenize=True, return_dict=True, add_generation_prompt=True)
        before, _ = codec.whole(sample[:cut])
        if list(prompt["input_ids"]) != [*before, *codec.turn_start]:
            raise SetupError("A later prompt does not start with the earlier dialogue: the template drops history.")
