"""Training language models in the words that they play with.

Here: the run file (`config`), games and demonstrations (`games`, `demonstrations`), a base and its
tokenizer (`base`), imitation (`imitation`), reinforcement (`reinforcement`), many tables played at once by
one model (`playing`), judging (`judging`), publishing (`publish`), one command for all (`__main__`). Not
here: the compact dialogue and its small policies (`training.sft`, `training.grpo`).

Contract: a model is shown the very messages that `agents.llm` sends and is read by the same reader, in
either protocol; what it learns is its own answers and their stop token alone. Nothing is downloaded
unless a run file names a base that is not on this machine and says so.
"""
