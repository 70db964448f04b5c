// Parses the `host:port` of a listener. An IPv6 host is written in brackets: `[::]:9000`.

export interface BindAddress {
  readonly host: string
  /** 0: the system chooses a port. */
  readonly port: number
}

const portMax = 65_535

/** Returns null when the text is not a valid address. */
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
