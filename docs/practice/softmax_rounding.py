# %% [markdown]
# # How exact is exact?

# %%
print(1 + 1)
