/* Numbers as the pages made at build print them. */

export const grouped = value => value.toLocaleString("en") // whole numbers, BigInt too

/* Round to so many digits; what lies exactly half way goes to the even digit, as in Python. */
export function fixed(value, digits) {
  let text = value.toFixed(digits) // half way up
  const halfWay = (value * 2 ** (digits + 1)) % 2 === 1
  const last = Number(text.at(-1))
  if (halfWay && last % 2) text = text.slice(0, -1) + (last - 1)
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, ",")
}

export function short(value) {
  if (value < 0.005) return value.toExponential(1)
  return fixed(value, value < 10 ? 2 : 1)
}
