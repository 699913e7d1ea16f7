"""Events on Spark: files and topics are read, and put into the columns that travel to workers."""
