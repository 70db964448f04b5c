// Displays the rows of a result. Only visible rows have DOM elements, so large results scroll smoothly.

import { byId, element } from './element.js'

const rowPixels = 26
const spareRows = 12
const widthMin = 60
const widthMax = 420
const characterPixels = 8.5
const sampleRows = 200

const grid = byId('grid')
const rightTypes = new Set(['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'])
let shown = { columns: [], dataset: [], widths: [] }
let space = element('div')
let first = -1

export function openGrid() {
  grid.addEventListener('scroll', paint, { passive: true })
  new ResizeObserver(() => {
    first = -1
    paint()
  }).observe(grid)
}

export function showRows(columns, dataset) {
  shown = { columns, dataset, widths: widthsOf(columns, dataset) }
  const head = element('div', { className: 'head' })
  columns.forEach((column, index) => {
    const cell = element(
      'div',
      { className: 'cell', title: column.name },
      column.name,
      element('small', {}, column.type),
    )
    cell.style.width = `${shown.widths[index]}px`
    head.append(cell)
  })
  space = element('div', { className: 'space' })
  space.style.height = `${dataset.length * rowPixels}px`
  space.style.minWidth = `${shown.widths.reduce((sum, width) => sum + width, 0)}px`
  grid.replaceChildren(head, space)
  grid.scrollTop = 0
  first = -1
  paint()
}

export function clearRows() {
  shown = { columns: [], dataset: [], widths: [] }
  grid.replaceChildren()
}

export function cellText(value) {
  if (value === null || value === undefined) return null
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function widthsOf(columns, dataset) {
  return columns.map(({ name, type }, index) => {
    let characters = Math.max(name.length, type.length)
    for (const row of dataset.slice(0, sampleRows)) characters = Math.max(characters, cellText(row[index])?.length ?? 4)
    return Math.min(widthMax, Math.max(widthMin, Math.ceil(characters * characterPixels) + 22))
  })
}

function paint() {
  const { dataset } = shown
  const from = Math.max(0, Math.floor(grid.scrollTop / rowPixels) - spareRows)
  if (from === first) return
  first = from
  const to = Math.min(dataset.length, from + Math.ceil(grid.clientHeight / rowPixels) + 2 * spareRows)
  const rows = []
  for (let index = from; index < to; index++) rows.push(rowElement(index))
  space.replaceChildren(...rows)
}

function rowElement(index) {
  const row = element('div', { className: 'row' })
  row.style.top = `${index * rowPixels}px`
  shown.columns.forEach(({ type }, column) => {
    const text = cellText(shown.dataset[index][column])
    const kind = text === null ? ' null' : rightTypes.has(type) ? ' right' : ''
    const cell = element('div', { className: `cell${kind}`, title: text ?? 'null' }, text ?? 'null')
    cell.style.width = `${shown.widths[column]}px`
    row.append(cell)
  })
  return row
}
