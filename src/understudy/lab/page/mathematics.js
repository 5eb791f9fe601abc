// Numbers and symbols as they are printed.

const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹", lowered = "₀₁₂₃₄₅₆₇₈₉";
const digits = (number, shapes) => [...String(number)].map((c) => (c === "-" ? "⁻" : shapes[Number(c)])).join("");

export const power = (exponent) => `10${digits(exponent, raised)}`;
export const indexed = (letter, i) => letter + digits(i, lowered);

// 0.012 where that is short, 1.2·10⁻⁵ elsewhere.
export function scientific(x, places = 1) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "not finite";
  if (x === 0) return "0";
  if (Math.abs(x) >= 0.01 && Math.abs(x) < 1000) return String(+x.toPrecision(places + 1)).replace("-", "−");
  const [mantissa, exponent] = x.toExponential(places).split("e");
  return `${mantissa.replace("-", "−")}·${power(Number(exponent))}`;
}

export function decimal(x, places) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  return Math.abs(x) >= 1e6 ? scientific(x) : x.toFixed(places).replace("-", "−");
}
