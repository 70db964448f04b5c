// `host:port` of a listener, as settings write it. An IPv6 host stands in brackets: `[::]:9000`.

export interface BindAddress {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
}

const portMax = 65_535

/** Null when the text is no address. */
export function parseBindAddress(text: string): BindAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text)
  if (match === null) return null
  const port = Number(match[3])
  if (port > portMax) return null
  return { host: match[1] ?? match[2] ?? '', port }
}

export function bindAddressText({ host, port }: BindAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
