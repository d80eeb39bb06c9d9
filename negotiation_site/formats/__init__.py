"""How the site writes dates and times, one module a language, as Django's `FORMAT_MODULE_PATH` wants it. Nothing else."""
