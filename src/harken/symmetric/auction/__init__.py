"""Auctions on symmetric matching: offers, bids, and the order book that says which bid leads."""
