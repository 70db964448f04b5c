// Type of the static pages that the HTTP gateway serves. deploy/main.ts loads the console's pages and passes them in,
// because one gateway must not import another.

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
