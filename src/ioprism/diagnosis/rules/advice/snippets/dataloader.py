# read many samples at once, in processes of their own, ahead of time
loader = torch.utils.data.DataLoader(
    dataset, batch_size=64, num_workers=8, prefetch_factor=4, persistent_workers=True
)
