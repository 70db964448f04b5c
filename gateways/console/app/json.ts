// Type checks for values that JSON.parse returned: objects, lists, strings and numbers.

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object in a text; an empty one if the text contains none. */
export function objectIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

export function asText(value: unknown, otherwise = ''): string {
  return typeof value === 'string' ? value : otherwise
}

export function asNumber(value: unknown, otherwise = 0): number {
  return typeof value === 'number' ? value : otherwise
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
