// Static pages that the HTTP gateway serves. The composition root passes the console's pages in, since gateways do
// not import each other.

export interface Page {
  readonly contentType: string
  readonly body: Buffer
  /** Lets a browser revalidate its cached copy. */
  readonly etag: string
}

export interface Pages {
  /** Pages by path. */
  readonly files: ReadonlyMap<string, Page>
  /** Redirect target for a browser that requests `/`; null: no redirect. */
  readonly home: string | null
  /** Headers of every page. */
  readonly headers: readonly string[]
}

export const noPages: Pages = { files: new Map(), home: null, headers: [] }
