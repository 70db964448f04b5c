// Splits the JSON rows of /exec into the texts of their cells, since JSON.parse would round 64-bit integers.

/** `text` is `[..],[..]`: rows separated by commas. */
export function cellsOfRows(text: string): string[][] {
  const rows: string[][] = []
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\],]|[^",[\]\s]+/g) ?? []
  let row: string[] = []
  let cell = ''
  let depth = 0
  for (const token of tokens) {
    if (token === '[') depth++
    if (token === ']') depth--
    if (depth === 0) {
      if (token === ']') rows.push(cell === '' ? row : [...row, cell])
      row = []
      cell = ''
    } else if (depth === 1 && token === ',') {
      row.push(cell)
      cell = ''
    } else if (!(depth === 1 && token === '[')) cell += token
  }
  return rows
}
