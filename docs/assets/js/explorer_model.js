/* The formulas of the labs hbm_traffic, roofline and tile_budget, for the explorer; a test holds
   them against the Python ones. Counts are BigInt, so that none is ever rounded. */

export const naiveBytes = (N, d, itemsize) => (4n * N * d + 4n * N * N) * itemsize

export const compulsoryBytes = (N, d, itemsize) => 4n * N * d * itemsize

export function issuedBytes(N, d, tile, itemsize) {
  const queryTiles = (N + tile - 1n) / tile // rounded up
  const once = 2n * N * d * itemsize + 4n * N // Q, O and the fp32 logsumexp
  return once + queryTiles * 2n * N * d * itemsize
}

export const attentionFlops = (N, d) => 4n * N * N * d

export const intensity = (flops, bytes) => Number(flops) / Number(bytes)

export const ridgePoint = (peak, rate) => peak / rate

export const attainable = (flopPerByte, peak, rate) => Math.min(peak, flopPerByte * rate)

export const bound = (flopPerByte, peak, rate) =>
  flopPerByte < ridgePoint(peak, rate) ? "memory-bound" : "compute-bound"

export const outputTileBytes = (tile, d) => tile * d * 4n // the sums of O, in fp32

/* All that the explorer shows of one choice: sizes as whole numbers, `peak` in FLOP/s, `rate` in
   B/s. Intensities are those of one head, whose counts a browser's numbers hold exactly. */
export function explore({ B, H, N, d, Br, itemsize, peak, rate }) {
  const [n, depth, tile, e] = [N, d, Br, itemsize].map(BigInt)
  const heads = BigInt(B) * BigInt(H)
  const flops = attentionFlops(n, depth)
  const aHead = {
    "naive": naiveBytes(n, depth, e),
    "tile-issued": issuedBytes(n, depth, tile, e),
    "compulsory": compulsoryBytes(n, depth, e)
  }
  const counts = Object.entries(aHead).map(([name, bytes]) => {
    const flopPerByte = intensity(flops, bytes)
    const top = attainable(flopPerByte, peak, rate)
    return {
      name,
      bytes: heads * bytes,
      fewer: intensity(aHead.naive, bytes),
      intensity: flopPerByte,
      bound: bound(flopPerByte, peak, rate),
      attainable: top,
      seconds: Number(heads * flops) / top
    }
  })
  return {
    flops: heads * flops,
    ridge: ridgePoint(peak, rate),
    outputTile: outputTileBytes(tile, depth),
    counts
  }
}
