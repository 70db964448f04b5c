// Pages that the HTTP gateway serves as they are: the console is one, and it is handed in, since gateways do not know
// each other.

export interface Page {
  readonly contentType: string
  readonly body: Buffer
  /** Tells a browser that it has the newest one. */
  readonly etag: string
}

export interface Pages {
  /** By path. */
  readonly files: ReadonlyMap<string, Page>
  /** Where a browser that asks for `/` is sent; null: nowhere. */
  readonly home: string | null
  /** Headers of every page. */
  readonly headers: readonly string[]
}

export const noPages: Pages = { files: new Map(), home: null, headers: [] }
