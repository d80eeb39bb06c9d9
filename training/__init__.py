"""Training agents on episodes, and measuring them. Scripts are pure of Django; the rim never imports torch."""
