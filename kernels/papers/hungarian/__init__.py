"""The classical Hungarian algorithm of Lopes et al. (2019), in seven versions from naive to fast."""
