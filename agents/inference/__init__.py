"""Serves small language models to the site: `python -m agents.inference`.

Here: the embedded model (`embedded`, through the llama.cpp bindings in `llama`), local checkpoint
folders (`checkpoint`, through transformers) and an OpenAI-compatible HTTP face for both (`server`).
Not here: asking a model for anything (`agents.backends`), what is asked (`agents.llm`).

Contract: a process of its own, and the only one of the site that loads llama.cpp or torch. It
listens on one address, answers only who knows its key where it has one, and its threads, contexts,
answers and waiting requests are bounded.
"""
