"""MAP-UOT of Sun, Hu and Jiang (2024), as published and with a corrected rule."""
