# one large archive instead of a file per sample (pip install webdataset)
dataset = webdataset.WebDataset("samples-{000000..000063}.tar").decode().to_tuple("png", "json")
