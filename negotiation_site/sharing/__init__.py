"""Results that people show to others: a public page with a card, behind a link that can be taken back."""
