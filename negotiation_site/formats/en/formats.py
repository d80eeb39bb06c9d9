"""One date and one time on every page: 30 Nov 2026, 14:05.

The month is a word, so that nobody takes the day for it; twenty-four hours, as on the axes of plots; the short forms
are the same, so that no two pages differ. Files and interfaces write ISO 8601 and do not come here.
"""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i"
SHORT_DATE_FORMAT = DATE_FORMAT
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
