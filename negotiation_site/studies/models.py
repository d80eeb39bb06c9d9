"""Tables of studies and of those who take part.

Models hold fields, constraints and predicates on their own columns. Studies are written by `authoring`, the life
of a participation by `conduct` and nothing else. A design is stored as canonical JSON and read by
`design.decode`.

Who somebody is (platform parameters) and what they wrote (`StudyAnswer`, details of a `StudyEvent`) can be
erased; the row of a `Participation` stays with its state, so that everybody who entered is counted once.
Money that was negotiated is never stored here as a truth: `StudyRound` keeps what its room's episode says, and
`pay` works everything out from there again.
"""

import secrets
from functools import cached_property

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from markets.models import Participant, PartyRole, Room, new_public_id
from negotiation_site.studies.design import Design, decode


class StudyStatus(models.TextChoices):
    """Life of a study. Links let people in while it is a pilot or open."""

    DRAFT = "draft", _("draft")
    PILOT = "pilot", _("pilot")
    OPEN = "open", _("open")
    PAUSED = "paused", _("paused")
    CLOSED = "closed", _("closed")


class Mode(models.TextChoices):
    """Whose data a participation is: the study's, the pilot's, or nobody's (its author looking around)."""

    LIVE = "live", _("study")
    PILOT = "pilot", _("pilot")
    PREVIEW = "preview", _("preview")


class Study(models.Model):
    """An experiment under one address. What it is stands in its versions."""

    slug = models.SlugField(unique=True)
    status = models.CharField(max_length=10, choices=StudyStatus.choices, default=StudyStatus.DRAFT)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="studies"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "studies"
        permissions = [("run_study", "Can run studies")]

    def __str__(self) -> str:
        return self.slug

    @property
    def mode(self) -> Mode:
        """Whose data somebody who enters now is."""
        return Mode.PILOT if self.status == StudyStatus.PILOT else Mode.LIVE

    @property
    def lets_in(self) -> bool:
        """Whether links lead in."""
        return self.status in (StudyStatus.PILOT, StudyStatus.OPEN)


class StudyVersion(models.Model):
    """A design. It may be changed until the first participant has entered; then a change makes the next version."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    """Copied from the design, for lists."""
    design = models.TextField()
    """Canonical JSON of `design.Design`."""
    sha256 = models.CharField(max_length=64)
    """Hash of that text."""
    note = models.CharField(max_length=200, blank=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    """When the first participant entered, or it was registered; None while it may be changed."""
    registered_at = models.DateTimeField(null=True, blank=True)
    """When it was registered before the data were there: its plan is public from then on."""
    plan_sha256 = models.CharField(max_length=64, blank=True, db_index=True)
    """Hash of the public plan (`design.plan`), once registered."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["study", "-number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="study_version_once")]

    def __str__(self) -> str:
        return f"{self.study_id} v{self.number}"

    @cached_property
    def parsed(self) -> Design:
        """The design, read once for each instance."""
        return decode(self.design)


class LinkKind(models.TextChoices):
    """How often a link lets somebody in."""

    OPEN = "open", _("for anybody")
    ONE_TIME = "one_time", _("for one person")


def new_token() -> str:
    """A link nobody can guess, short enough to be sent around."""
    return secrets.token_urlsafe(9)


class RecruitmentLink(models.Model):
    """A way into a study."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="links")
    token = models.CharField(max_length=24, unique=True, default=new_token)
    kind = models.CharField(max_length=10, choices=LinkKind.choices)
    label = models.CharField(max_length=100, blank=True)
    """The author's note: where it was posted, whom it was sent to."""
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True)
    """Of a one-time link: when somebody entered by it."""
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.token


class State(models.TextChoices):
    """Where a participant is. `conduct.NEXT` says what may follow what."""

    ENTERED = "entered", _("reading the consent")
    CONSENTED = "consented", _("reading the instructions")
    QUIZ = "quiz", _("at the quiz")
    PRACTICE = "practice", _("practising")
    WAITING = "waiting", _("waiting")
    PLAYING = "playing", _("playing")
    SURVEY = "survey", _("at the survey")
    FINISHED = "finished", _("finished")
    FAILED_QUIZ = "failed_quiz", _("did not pass the quiz")
    RETURNED = "returned", _("left early")
    TIMED_OUT = "timed_out", _("fell silent")
    WITHDREW = "withdrew", _("withdrew")


ENDED = (State.FINISHED, State.FAILED_QUIZ, State.RETURNED, State.TIMED_OUT, State.WITHDREW)
"""States that nothing follows, but `WITHDREW`."""
RELEASED = (State.FAILED_QUIZ, State.RETURNED, State.TIMED_OUT, State.WITHDREW)
"""States that give a place in the design back."""


class Participation(models.Model):
    """One person in one study. Everybody who entered has exactly one, whatever became of them."""

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="participations")
    version = models.ForeignKey(StudyVersion, on_delete=models.PROTECT, related_name="participations")
    mode = models.CharField(max_length=10, choices=Mode.choices)
    link = models.ForeignKey(
        RecruitmentLink, null=True, blank=True, on_delete=models.SET_NULL, related_name="participations"
    )
    participant = models.OneToOneField(
        Participant, null=True, blank=True, on_delete=models.SET_NULL, related_name="participation"
    )
    """Who sits in the rooms: made for this study and used nowhere else. None once erased."""
    state = models.CharField(max_length=12, choices=State.choices, default=State.ENTERED)
    outcome = models.CharField(max_length=16, blank=True)
    """A `design.Outcome` once it is over."""

    # Who it is. Erasable.
    platform_person = models.CharField(max_length=120, blank=True)
    """`PROLIFIC_PID` or `participant_label`."""
    platform_study = models.CharField(max_length=120, blank=True)
    """`STUDY_ID`."""
    platform_session = models.CharField(max_length=120, blank=True)
    """`SESSION_ID`."""
    person_key = models.CharField(max_length=64, blank=True)
    """Keyed hash of `platform_person`: recognises a second try, and stays after an erasure for that."""
    device = models.CharField(max_length=32, blank=True)
    """Key of the browser that takes part; another that takes over replaces it."""
    resume_token = models.CharField(max_length=24, unique=True, default=new_public_id)
    """Leads the same person back in from another device."""

    # Place in the design.
    condition = models.CharField(max_length=40, blank=True)
    role = models.CharField(max_length=10, choices=PartyRole.choices, blank=True)
    slot = models.PositiveIntegerField(null=True, blank=True)
    """Place in the cell of condition and role; given back by those who drop out."""
    assigned_slot = models.PositiveIntegerField(null=True, blank=True)
    """The place as it was assigned, kept: says which block of scenarios was met."""
    round = models.PositiveIntegerField(default=0)
    """The round that is being played or was played last; 0 before the first."""
    quiz_tries = models.PositiveIntegerField(default=0)

    consent_version = models.CharField(max_length=40, blank=True)
    consent_scope = models.CharField(max_length=10, blank=True)
    """`research` or `public`; what seats are marked with, but a pilot's, which are private."""

    entered_at = models.DateTimeField()
    consented_at = models.DateTimeField(null=True, blank=True)
    instructed_at = models.DateTimeField(null=True, blank=True)
    quiz_passed_at = models.DateTimeField(null=True, blank=True)
    waiting_since = models.DateTimeField(null=True, blank=True)
    seated_at = models.DateTimeField(null=True, blank=True)
    """When the first round that counts began."""
    state_at = models.DateTimeField()
    """When the present state was reached."""
    last_seen_at = models.DateTimeField()
    """When a page of this participant was last heard of."""
    extended_until = models.DateTimeField(null=True, blank=True)
    """Staff gave more time: nobody is timed out before."""
    ended_at = models.DateTimeField(null=True, blank=True)
    completion_code = models.CharField(max_length=60, blank=True)

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "mode", "condition", "role", "slot"],
                condition=Q(slot__isnull=False),
                name="participation_slot_once",
            ),
            models.UniqueConstraint(
                fields=["study", "mode", "person_key"],
                condition=~Q(person_key=""),
                name="participation_person_once",
            ),
        ]
        indexes = [
            models.Index(fields=["study", "mode", "state"], name="participation_state"),
            models.Index(fields=["state", "last_seen_at"], name="participation_silent"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def ended(self) -> bool:
        """Whether nothing is to be done any more."""
        return self.state in ENDED


class RoundOutcome(models.TextChoices):
    """What became of a round for one participant."""

    DEAL = "deal", _("deal")
    NO_DEAL = "no_deal", _("no deal")
    SILENT = "silent", _("fell silent")
    """The participant's time ran out, or they were replaced."""
    PARTNER_LEFT = "partner_left", _("the other side fell silent")
    STOPPED = "stopped", _("stopped by staff")


class StudyRound(models.Model):
    """One participant in one room. Round 0 is practice. Figures are copied from the room's episode once it is over."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    room = models.ForeignKey(Room, on_delete=models.PROTECT, related_name="study_rounds")
    party = models.CharField(max_length=20)
    scenario_set = models.PositiveIntegerField(null=True, blank=True)
    """Which block of draws; None for practice."""
    scenario_number = models.PositiveIntegerField(null=True, blank=True)
    """Which draw of the block, before rotation."""
    partner = models.ForeignKey(Participation, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """Who began on the other side; None for an agent."""
    agent_slug = models.CharField(max_length=100, blank=True)
    """Who sat opposite, or steps in for whoever does."""
    partner_replaced_at = models.DateTimeField(null=True, blank=True)
    """When an agent took the other side's chair."""
    replaced_at = models.DateTimeField(null=True, blank=True)
    """When an agent took this participant's chair."""
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, choices=RoundOutcome.choices, blank=True)
    """Empty while it is being played."""
    surplus_cents = models.BigIntegerField(null=True, blank=True)
    """Own gain in the market's currency; None while it is not known, 0 without a deal."""

    class Meta:
        ordering = ["participation", "number"]
        constraints = [
            models.UniqueConstraint(fields=["participation", "number"], name="study_round_once"),
            models.UniqueConstraint(fields=["room", "party"], name="study_round_seat_once"),
        ]

    def __str__(self) -> str:
        return f"{self.participation_id} #{self.number}"


class AnswerPart(models.TextChoices):
    """What a question was part of."""

    QUIZ = "quiz", _("quiz")
    SURVEY = "survey", _("survey")


class StudyAnswer(models.Model):
    """An answer as it was given. Erasable."""

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="answers")
    part = models.CharField(max_length=10, choices=AnswerPart.choices)
    question = models.CharField(max_length=40)
    attempt = models.PositiveIntegerField(default=1)
    answer = models.TextField(blank=True)
    """The option's text, the number, or the words; empty for a question that was passed over."""
    right = models.BooleanField(null=True, blank=True)
    """Of a quiz question."""
    answered_at = models.DateTimeField()

    class Meta:
        ordering = ["participation", "id"]
        constraints = [
            models.UniqueConstraint(fields=["participation", "part", "question", "attempt"], name="study_answer_once"),
        ]

    def __str__(self) -> str:
        return f"{self.participation_id} {self.part} {self.question}"


class StudyEvent(models.Model):
    """What happened in a study, in order: steps of participants, pastes, lost focus, acts of the staff."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="events")
    participation = models.ForeignKey(
        Participation, null=True, blank=True, on_delete=models.CASCADE, related_name="events"
    )
    kind = models.CharField(max_length=30)
    """A key of `events.KINDS`."""
    detail = models.TextField(blank=True)
    """A few words or JSON; never what was pasted. Erasable."""
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Of an act of the staff."""
    at = models.DateTimeField()

    class Meta:
        ordering = ["study", "id"]
        indexes = [models.Index(fields=["participation", "kind"], name="study_event_kind")]

    def __str__(self) -> str:
        return f"{self.study_id} {self.kind}"


class StudyNotice(models.Model):
    """A message of the staff, shown on every page of those it is for until they have put it away."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="notices")
    participation = models.ForeignKey(
        Participation, null=True, blank=True, on_delete=models.CASCADE, related_name="notices"
    )
    """None for everybody who is in the study when it is sent."""
    text = models.TextField()
    sent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    sent_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.study_id} {self.sent_at:%H:%M}"


class Payment(models.Model):
    """What a participation is paid. Recomputed as often as one likes until it is settled, then never changed."""

    participation = models.OneToOneField(Participation, on_delete=models.CASCADE, related_name="payment")
    currency = models.CharField(max_length=3)
    fee_cents = models.BigIntegerField()
    """Show-up fee, or part pay."""
    bonus_cents = models.BigIntegerField(null=True, blank=True)
    """From the event log; None where it cannot be known yet, which is not 0."""
    counted = models.CharField(max_length=200, blank=True)
    """Numbers of the rounds that count, with commas."""
    computed_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["participation"]

    def __str__(self) -> str:
        return f"{self.participation_id} {self.fee_cents}+{self.bonus_cents}"
