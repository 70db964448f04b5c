// Version numbers of the formats on disk that this server reads and writes. It refuses a root folder with newer ones.

import { segmentVersion } from '../wal/segment.js'
import { formats, newestFormat } from './manifest/manifest-format.js'
import { partFormat } from './part/part-index.js'

export const diskFormats = {
  manifest: { oldest: formats.oldest, newest: newestFormat },
  log: segmentVersion,
  part: partFormat,
} as const
