// Quantiles of numbers in any order: the numbers below and above a place are put on its two sides (quickselect, C. A. R. Hoare,
// Algorithm 65: FIND), which takes a time in proportion to their number, not that of a sort.

/** Of so many numbers a sort is as fast. */
const sortedBelow = 32

/** The value below which a share of the numbers lies, as one of them. Their order changes. */
export function discreteQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = Math.ceil(share * numbers.length) - 1
  return numberAt(numbers, Math.min(numbers.length - 1, Math.max(0, place)))
}

/** Between two numbers in proportion, as SQL has it. Their order changes. */
export function continuousQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = share * (numbers.length - 1)
  const low = Math.floor(place)
  const below = numberAt(numbers, low)
  if (low === place) return below
  // All behind the place are at least as large.
  let above = numbers[low + 1]!
  for (let at = low + 2; at < numbers.length; at++) if (numbers[at]! < above) above = numbers[at]!
  return above === below ? below : below + (above - below) * (place - low)
}

/** The number that a sort would put at a place; smaller ones lie before it then, larger ones behind. None is NaN. */
function numberAt(numbers: Float64Array, place: number): number {
  let [low, high] = [0, numbers.length - 1]
  // Unlucky pivots would make it quadratic.
  let rounds = 2 * Math.ceil(Math.log2(numbers.length + 1))
  while (high - low >= sortedBelow && rounds-- > 0) {
    const pivot = median(numbers, low, (low + high) >>> 1, high)
    let [left, right] = [low, high]
    while (left <= right) {
      while (numbers[left]! < pivot) left++
      while (numbers[right]! > pivot) right--
      if (left > right) break
      const kept = numbers[left]!
      numbers[left++] = numbers[right]!
      numbers[right--] = kept
    }
    if (place <= right) high = right
    else if (place >= left) low = left
    else return numbers[place]!
  }
  numbers.subarray(low, high + 1).sort()
  return numbers[place]!
}

function median(numbers: Float64Array, first: number, second: number, third: number): number {
  const [a, b, c] = [numbers[first]!, numbers[second]!, numbers[third]!]
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c))
}
