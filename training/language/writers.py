"""Answers from a `vllm serve` (or `trl vllm-serve`) that holds the weights being trained.

Every process asks for itself, as many answers as its games need: only the weights go through TRL, from the
first process. Token ids go in and out, so nothing is tokenized twice.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from training.config import ConfigError
from training.language.playing import Question, Written


class VllmWriter:
    """A server's OpenAI-style completions, with token ids."""

    def __init__(self, url: str, *, together: int) -> None:
        from openai import OpenAI

        self._client = OpenAI(base_url=f"{url.rstrip('/')}/v1", api_key="none", max_retries=3)
        self._together = together
        self._model = ""

    def write(self, questions: Sequence[Question]) -> list[Written]:
        """An answer to each, all of them at once. Raises `ConfigError` where the server cannot be asked."""
        from openai import OpenAIError

        try:
            self._model = self._model or self._client.models.list().data[0].id
            with ThreadPoolExecutor(max(1, min(len(questions), self._together))) as pool:
                return list(pool.map(self._one, questions))
        except (OpenAIError, IndexError) as error:
            raise ConfigError(f"The vLLM server does not answer: {error}") from error

    def _one(self, question: Question) -> Written:
        answer: Any = self._client.completions.create(
            model=self._model,
            prompt=question.prompt,
            max_tokens=question.longest,
            temperature=question.temperature,
            top_p=1.0,
            seed=question.seed,
            logprobs=0,
            extra_body={"return_token_ids": True, "top_k": 0},
        )
        choice = answer.choices[0]
        ids = list(choice.token_ids)
        return Written(ids, [float(found) for found in choice.logprobs.token_logprobs])
