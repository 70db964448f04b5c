// Stores the state of the console in the browser (local storage): tabs, history, layout, colours; never credentials or
// results.

const prefix = 'penstock.'

/** The remembered value, if it is of the expected form. */
export function recall<T>(key: string, isValid: (value: unknown) => value is T, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(prefix + key) ?? 'null')
    return isValid(value) ? value : otherwise
  } catch {
    return otherwise
  }
}

export function remember(key: string, value: unknown): void {
  try {
    localStorage.setItem(prefix + key, JSON.stringify(value))
  } catch {
    // The storage is full or forbidden: the console works without a memory.
  }
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

export function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

export function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isString)
}
