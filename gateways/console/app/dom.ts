// Helpers that create and find DOM elements. Values from the database become text nodes only, so the content of a table
// is never parsed as markup. Styles are set as properties, because the page's Content-Security-Policy forbids inline
// styles.

type Properties<K extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[K], 'style' | 'attributes'>
> & {
  /** Attributes without a property. */
  readonly attributes?: Readonly<Record<string, string>>
}

type Child = Node | string | null

/** The element with this id, which must exist and be of this kind. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id)
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`)
  return found
}

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties<K> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag)
  const { attributes, ...plain } = properties
  Object.assign(made, plain)
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value)
  made.append(...children.filter((child) => child !== null))
  return made
}

export function show(target: HTMLElement, visible: boolean): void {
  target.hidden = !visible
}

/**
 * Draws `host` now or, while something in it is pressed, after the release: a browser sends no click for an element that
 * is replaced between press and release.
 */
export function drawReleased(host: HTMLElement, draw: () => void): void {
  if (!host.matches(':active')) {
    draw()
    return
  }
  const released = new AbortController()
  for (const end of ['pointerup', 'pointercancel', 'keyup']) {
    const then = (): void => {
      released.abort()
      // The click follows the release.
      setTimeout(draw)
    }
    document.addEventListener(end, then, { signal: released.signal })
  }
}

const icons = {
  run: 'M5 3.5v9l7.5-4.5z',
  runAll: 'M2.5 3.5v9l5-4.5zM8 3.5v9l5.5-4.5z',
  stop: 'M4 4h8v8H4z',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  chevron: 'M6 4l4 4-4 4',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3',
  table: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 6.5v6',
  view: 'M1.5 8s2.5-4.5 6.5-4.5S14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4',
  matView: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M5 10.5l2-2 1.5 1.5L11 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1.8M8 12.7v1.8M1.5 8h1.8M12.7 8h1.8M3.4 3.4l1.3 1.3M11.3 11.3l1.3 1.3M3.4 12.6l1.3-1.3M11.3 4.7l1.3-1.3',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.500z',
  system: 'M2 3.500h12v7.500H2zM6 13.500h4M8 11v2.5',
  user: 'M8 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M3 13.500c.5-2.5 2.5-4 5-4s4.5 1.5 5 4',
  copy: 'M5.5 5.500h7v8h-7zM3.5 10.500v-8h7',
  download: 'M8 2.500v7.500M5 7.500l3 3 3-3M3 13.500h10',
  upload: 'M8 10.500v-7.500M5 6l3-3 3 3M3 13.500h10',
  chart: 'M2.5 2.500v11h11M5 10.500l2.5-3.5 2 2 3.5-4.5',
  rows: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  key: 'M10.5 2.500a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8.3 7.700l-5.3 5.300M4.5 11.500l1.5 1.5',
  clock: 'M8 2.500a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3.200l2 1.3',
} as const

export type IconName = keyof typeof icons

const svg = 'http://www.w3.org/2000/svg'

export function icon(name: IconName): SVGElement {
  const drawing = document.createElementNS(svg, 'svg')
  for (const [key, value] of [
    ['viewBox', '0 0 16 16'],
    ['aria-hidden', 'true'],
    ['class', `icon icon-${name}`],
  ] as const) {
    drawing.setAttribute(key, value)
  }
  const path = document.createElementNS(svg, 'path')
  path.setAttribute('d', icons[name])
  drawing.append(path)
  return drawing
}

interface ButtonOptions {
  readonly icon?: IconName
  readonly title?: string
  readonly className?: string
  readonly disabled?: boolean
}

/** A button with a text, an icon, or both; without a text the title names it. */
export function button(text: string, run: (event: Event) => void, options: ButtonOptions = {}): HTMLButtonElement {
  const { icon: name, title, className = '', disabled = false } = options
  const made = element('button', { type: 'button', className, disabled }, name === undefined ? null : icon(name))
  if (text !== '') made.append(element('span', {}, text))
  if (title !== undefined) made.title = title
  if (text === '' && title !== undefined) made.ariaLabel = title
  made.addEventListener('click', run)
  return made
}

export function select(
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  value: string,
  changed: (value: string) => void,
): HTMLSelectElement {
  const made = element('select', { ariaLabel: label, title: label })
  made.append(...options.map(([id, text]) => element('option', { value: id }, text)))
  made.value = value
  made.addEventListener('change', () => changed(made.value))
  return made
}

/** Saves data as a file of the user. */
export function saveBlob(blob: Blob, name: string): void {
  const link = element('a', { href: URL.createObjectURL(blob), download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** Writes to the clipboard, which plain HTTP from another machine does not allow by the modern way. */
export async function copyToClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const area = element('textarea', { value: text, className: 'off-screen', ariaLabel: 'Text to copy' })
  const focused = document.activeElement
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
}

/** Shows a short message in the corner, which screen readers announce. */
export function notify(text: string): void {
  const place = byId('notices', HTMLElement)
  const note = element('div', { className: 'notice' }, text)
  place.append(note)
  setTimeout(() => note.remove(), 4000)
}

export function errorText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** A divider that resizes by pointer and by arrow keys. `resize` gets the pixels by which it moved. */
export function makeSplitter(bar: HTMLElement, axis: 'x' | 'y', resize: (pixels: number) => void): void {
  bar.addEventListener('pointerdown', (begin) => {
    begin.preventDefault()
    bar.setPointerCapture(begin.pointerId)
    let last = axis === 'x' ? begin.clientX : begin.clientY
    const move = (event: PointerEvent): void => {
      const at = axis === 'x' ? event.clientX : event.clientY
      resize(at - last)
      last = at
    }
    bar.addEventListener('pointermove', move)
    bar.addEventListener('pointerup', () => bar.removeEventListener('pointermove', move), { once: true })
  })
  bar.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -16, ArrowUp: -16, ArrowRight: 16, ArrowDown: 16 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    resize(step)
  })
}
