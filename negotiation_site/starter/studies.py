"""The study of the starter world: does it matter what people are told of the other side? Made once, then left alone."""

from markets.models import Market
from negotiation_site.studies import authoring
from negotiation_site.studies.design import (
    AnswerKind,
    Completion,
    Condition,
    Consent,
    Counts,
    Design,
    Instructions,
    Pay,
    Practice,
    Quiz,
    QuizQuestion,
    Reveal,
    Scenarios,
    Side,
    SurveyQuestion,
    Told,
)
from negotiation_site.studies.models import LinkKind, RecruitmentLink, Study, StudyStatus

SLUG = "demo-study"
MARKET = "demo-bilateral"
SEED = 2026

SUMMARY = """You negotiate over everyday things, three times. Whatever you gain at the table is turned into money."""

CONSENT = """**What this is.** A study of how people bargain. You read instructions, answer two questions about them, \
practise once and then negotiate three times. A short survey ends it.

**What is kept.** Your offers and messages, your answers, and how long you took. No name, no address.

**Your choice.** Taking part is voluntary. You can leave at any time without giving a reason.

*This is a demonstration. Nobody is paid.*"""

EVERYBODY = """In each round one thing is for sale. You learn **what it is worth to you**; the other side does not.

- Only *offers* and *acceptances* bind. A price in a message is talk.
- If you agree on a price, your gain is the difference between that price and your own value.
- If you do not agree, both sides gain nothing."""
BUYER = "You **buy**. The lower the price, the more you gain. A price above your value would cost you money."
SELLER = "You **sell**. The higher the price, the more you gain. A price below your cost would lose you money."

QUESTIONS = (
    QuizQuestion(
        key="binds",
        text="You write: “I could go as low as 40.” What does that bind you to?",
        options=("To sell for 40, if the other side likes", "To nothing", "To answer within a minute"),
        right=1,
        explanation="A price in a message is talk. Only offers and acceptances bind.",
    ),
    QuizQuestion(
        key="gain-buyer",
        text="It is worth 80 to you, and you buy it for 65. What is your gain?",
        options=("15", "65", "80"),
        right=0,
        explanation="The gain is your value less the price.",
        role="buyer",
    ),
    QuizQuestion(
        key="gain-seller",
        text="It costs you 50, and you sell it for 65. What is your gain?",
        options=("50", "65", "15"),
        right=2,
        explanation="The gain is the price less your cost.",
        role="seller",
    ),
)

SURVEY = (
    SurveyQuestion(
        key="who",
        text="With whom did you negotiate?",
        kind=AnswerKind.CHOICE,
        options=("With a person", "With a program", "I cannot say"),
        manipulation_check=True,
    ),
    SurveyQuestion(
        key="fair",
        text="How fair was the other side?",
        kind=AnswerKind.SCALE,
        options=("not at all", "completely"),
    ),
    SurveyQuestion(
        key="remarks", text="Is there anything you would like to tell us?", kind=AnswerKind.TEXT, required=False
    ),
)

DEBRIEF = """Everybody negotiated with a program: one that gives way steadily, or one that holds out until late. Some \
were told that it was an AI, others were told nothing. We compare what they offered and what they gained."""


def demo_design(market: Market) -> Design:
    """Two opponents, told of or not, on both sides of one market."""
    conditions = tuple(
        Condition(
            key=f"{agent}-{told.value}",
            market=market.slug,
            market_version=market.version,
            side=Side.BOTH,
            agent=agent,
            told=told,
        )
        for agent in ("linear", "boulware")
        for told in (Told.AI, Told.NOTHING)
    )
    return Design(
        title="How people bargain",
        summary=SUMMARY,
        minutes=12,
        contact="whoever runs this server",
        consent=Consent(text=CONSENT, version="demo-1"),
        instructions=Instructions(everybody=EVERYBODY, buyer=BUYER, seller=SELLER),
        quiz=Quiz(questions=QUESTIONS, tries=3),
        practice=Practice(agent="conceder"),
        conditions=conditions,
        rounds=3,
        scenarios=Scenarios(seed=SEED, sets=6),
        survey=SURVEY,
        pay=Pay(currency="USD", show_up_cents=200, exchange_ppm=50_000, counts=Counts.RANDOM, cap_cents=1_000),
        completion=Completion(),
        reveal=Reveal.AT_END,
        debrief=DEBRIEF,
    )


def make() -> bool:
    """Make the demonstration study, open, with a link of its own name. False where it is there already."""
    if Study.objects.filter(slug=SLUG).exists():
        return False
    market = Market.objects.filter(slug=MARKET, retired_at=None).order_by("-version").first()
    if market is None:
        return False
    study = authoring.create(slug=SLUG, design=demo_design(market), author=None)
    RecruitmentLink.objects.create(study=study, kind=LinkKind.OPEN, token=SLUG, label="demonstration")
    authoring.set_status(study, StudyStatus.OPEN, actor=None)
    return True
