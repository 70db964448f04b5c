// Arithmetic of the virtual grid (grid.ts): the rows that are visible at a scroll position, column widths, and a
// scaling by which a result of any length fits into an element, whose height browsers limit.

/** Browsers clamp or misplace elements that are taller. */
export const spacePixelsMax = 8_000_000

export interface Viewport {
  readonly rowCount: number
  readonly rowPixels: number
  /** Height of the part that shows rows. */
  readonly viewPixels: number
}

/** Height of the element that scrolls. */
export function spacePixels({ rowCount, rowPixels }: Viewport): number {
  return Math.min(rowCount * rowPixels, spacePixelsMax)
}

/**
 * The position, in pixels of an unlimited element, of the view's upper edge. Beyond the limit of an element's height
 * a pixel of the scroll bar stands for several ones of the rows.
 */
export function rowsTop(viewport: Viewport, scrollTop: number): number {
  const full = viewport.rowCount * viewport.rowPixels
  const shown = spacePixels(viewport)
  if (full <= shown) return scrollTop
  const range = Math.max(1, shown - viewport.viewPixels)
  return Math.min(1, scrollTop / range) * (full - viewport.viewPixels)
}

/** The scroll position that has a row at a distance from the upper edge. */
export function scrollTopOf(viewport: Viewport, top: number): number {
  const full = viewport.rowCount * viewport.rowPixels
  const shown = spacePixels(viewport)
  if (full <= shown) return Math.max(0, top)
  const range = Math.max(1, shown - viewport.viewPixels)
  return Math.max(0, Math.min(range, (top / (full - viewport.viewPixels)) * range))
}

/** The rows to draw: those that are visible, and some around them. `offset`: where the first one is in the element. */
export function visibleRows(
  viewport: Viewport,
  scrollTop: number,
  spare: number,
): { first: number; end: number; offset: number } {
  const { rowCount, rowPixels, viewPixels } = viewport
  const top = rowsTop(viewport, scrollTop)
  const first = Math.max(0, Math.floor(top / rowPixels) - spare)
  const end = Math.min(rowCount, Math.ceil((top + viewPixels) / rowPixels) + spare)
  return { first, end: Math.max(first, end), offset: scrollTop - (top - first * rowPixels) }
}

/** The scroll position that brings a row into view; the current one if it is visible. */
export function scrollToRow(viewport: Viewport, scrollTop: number, row: number): number {
  const top = rowsTop(viewport, scrollTop)
  const rowTop = row * viewport.rowPixels
  if (rowTop < top) return scrollTopOf(viewport, rowTop)
  const bottom = rowTop + viewport.rowPixels
  return bottom > top + viewport.viewPixels ? scrollTopOf(viewport, bottom - viewport.viewPixels) : scrollTop
}

export const columnPixelsMin = 48
const columnPixelsMax = 420
const characterPixels = 7.6
const paddingPixels = 24
const sampledRows = 200

/** Widths of columns from their names, types and first values. */
export function columnWidths(heads: readonly string[], rows: readonly (readonly string[])[]): number[] {
  return heads.map((head, index) => {
    let characters = head.length + 2
    for (const row of rows.slice(0, sampledRows)) characters = Math.max(characters, (row[index] ?? '').length)
    return Math.min(columnPixelsMax, Math.max(columnPixelsMin, Math.ceil(characters * characterPixels) + paddingPixels))
  })
}
