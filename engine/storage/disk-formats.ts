// Numbers of the formats on disk that this server reads and writes. A root with newer ones is refused.

import { segmentVersion } from '../wal/segment.js'
import { formats, newestFormat } from './manifest/manifest-format.js'
import { partFormat } from './part/part-index.js'

export const diskFormats = {
  manifest: { oldest: formats.oldest, newest: newestFormat },
  log: segmentVersion,
  part: partFormat,
} as const
