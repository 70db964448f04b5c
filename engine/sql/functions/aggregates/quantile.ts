// Computes quantiles of the numbers of a group by selection, in linear time on average instead of a sort (quickselect;
// C. A. R. Hoare, Algorithm 65: FIND). The input must not contain NaN and is reordered in place.

/** Below this size a sort is as fast. */
const sortedBelow = 32

/**
 * The smallest number such that at least the given fraction of all numbers is not larger (percentile_disc). Reorders
 * the numbers.
 */
export function discreteQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = Math.ceil(share * numbers.length) - 1
  return numberAt(numbers, Math.min(numbers.length - 1, Math.max(0, place)))
}

/** Interpolates linearly between two numbers, as percentile_cont does. Reorders the numbers. */
export function continuousQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = share * (numbers.length - 1)
  const low = Math.floor(place)
  const below = numberAt(numbers, low)
  if (low === place) return below
  // All numbers after the index are at least as large.
  let above = numbers[low + 1]!
  for (let at = low + 2; at < numbers.length; at++) if (numbers[at]! < above) above = numbers[at]!
  return above === below ? below : below + (above - below) * (place - low)
}

/**
 * The number at an index of the sorted order. Afterwards smaller ones are before it and larger ones after it. None may
 * be NaN.
 */
function numberAt(numbers: Float64Array, place: number): number {
  let [low, high] = [0, numbers.length - 1]
  // Bounds the number of rounds, since bad pivots would make it quadratic; then a sort takes over.
  let rounds = 2 * Math.ceil(Math.log2(numbers.length + 1))
  while (high - low >= sortedBelow && rounds-- > 0) {
    const pivot = median(numbers, low, (low + high) >>> 1, high)
    let [left, right] = [low, high]
    while (left <= right) {
      while (numbers[left]! < pivot) left++
      while (numbers[right]! > pivot) right--
      if (left > right) break
      const retained = numbers[left]!
      numbers[left++] = numbers[right]!
      numbers[right--] = retained
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
