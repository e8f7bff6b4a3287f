"""How attempts run beside pytest's loop: planned, checked before they are paid for, pooled, stopped."""
