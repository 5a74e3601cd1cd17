"""One rank of a job whose other ranks are not here: a fake process group, streams that note what is issued on them."""
