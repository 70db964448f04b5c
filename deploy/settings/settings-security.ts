// The settings of security: users, rights, keys, certificates. A part of the one table of settings.

import type { SettingsTable } from './setting-row.js'

export const securitySettings = {
  'http.user': {
    reload: true,
    type: 'text',
    initial: '',
    says: 'With `http.password`: requests need credentials, and those of this user are good for everything.',
  },
  'http.password': { reload: true, type: 'secret', initial: '', says: 'Password of that user.' },
  'http.auth.required': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Requests need credentials even without `http.user`: those of users that SQL made.',
  },
  'http.health.check.authentication.required': {
    reload: true,
    type: 'boolean',
    initial: 'true',
    says: 'Where requests need credentials, `/` and `/ping` need them, too.',
  },
  'http.host.names': {
    reload: true,
    type: 'list',
    initial: '',
    says: 'Where no credentials are asked for: names by which the server may be called, besides addresses and local names, or `*` for any. Empty: any, but only local ones where it listens on the own machine alone. Pages of other sites cannot get in by a name of their own then.',
  },
  'http.security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Nothing can be changed over HTTP, whoever asks.',
  },
  'http.security.enabled': {
    type: 'boolean',
    initial: 'false',
    says: 'Serve HTTPS instead of HTTP.',
  },
  'http.security.keystore.path': {
    type: 'text',
    initial: '',
    says: 'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. A changed one is taken over at once. A relative path is below the root folder.',
  },
  'http.security.keystore.password': { type: 'secret', initial: '', says: 'Password of that key store.' },
  'http.cors.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Let pages of other sites use this server.',
  },
  'http.cors.allow.origin': {
    reload: true,
    type: 'text',
    initial: '',
    says: 'Whose pages: origins such as `https://app.example`, separated by commas; `*` for all.',
  },
  'http.min.security.enabled': {
    type: 'boolean',
    initial: 'false',
    says: 'Answer health checks by HTTPS.',
  },
  'http.min.security.keystore.path': {
    type: 'text',
    initial: '',
    says: 'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. A changed one is taken over at once. A relative path is below the root folder.',
  },
  'http.min.security.keystore.password': { type: 'secret', initial: '', says: 'Password of that key store.' },
  'line.tcp.auth.db.path': {
    type: 'text',
    initial: '',
    says: 'File of keys, `<key id> ec-p-256-sha256 <x> <y>` a line: senders then have to prove that they have one of them, or of a user. A relative path is below the root folder.',
  },
  'line.tcp.auth.required': {
    reload: true,
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'true', 'false'],
    says: 'Senders have to prove that they have the key of a user, even without such a file. `auto`: where HTTP wants credentials or `pg.password` is not the default one; where HTTP and the wire protocol are read-only, nobody may send.',
  },
  'line.tcp.security.enabled': {
    type: 'boolean',
    initial: 'false',
    says: 'Take line protocol over TLS instead of plain TCP.',
  },
  'line.tcp.security.keystore.path': {
    type: 'text',
    initial: '',
    says: 'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. A changed one is taken over at once. A relative path is below the root folder.',
  },
  'line.tcp.security.keystore.password': { type: 'secret', initial: '', says: 'Password of that key store.' },
  'pg.user': { reload: true, type: 'text', initial: 'admin', says: 'User of the PostgreSQL wire protocol.' },
  'pg.password': { reload: true, type: 'secret', initial: 'quest', says: 'Password of that user.' },
  'pg.designated.timestamp': {
    type: 'choice',
    initial: 'declared',
    choices: ['declared', 'first'],
    says: 'Of tables created over the PostgreSQL wire protocol: the column that the statement names, or with `first` the first NOT NULL TIMESTAMP column where it names none (partitioned by day). For sinks that create tables themselves.',
  },
  'pg.auth.method': {
    type: 'choice',
    initial: 'cleartext',
    choices: ['cleartext', 'md5', 'scram-sha-256'],
    says: 'How clients of the PostgreSQL wire protocol prove their password. `md5` is for users of this configuration only.',
  },
  'pg.readonly.user.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Let a second user in, who may only read.',
  },
  'pg.readonly.user': { reload: true, type: 'text', initial: 'user', says: 'Name of the user who may only read.' },
  'pg.readonly.password': {
    reload: true,
    type: 'secret',
    initial: 'quest',
    says: 'Password of the user who may only read.',
  },
  'pg.security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'The PostgreSQL wire protocol takes read-only queries, whoever asks.',
  },
  'pg.security.enabled': {
    type: 'boolean',
    initial: 'false',
    says: 'Offer encryption to clients that ask for it.',
  },
  'pg.security.keystore.path': {
    type: 'text',
    initial: '',
    says: 'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. A changed one is taken over at once. A relative path is below the root folder.',
  },
  'pg.security.keystore.password': { type: 'secret', initial: '', says: 'Password of that key store.' },
  'pg.security.required': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Send away clients that do not encrypt.',
  },
  'security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    says: 'Nothing can be changed from outside, whoever asks: over HTTP, the PostgreSQL wire protocol and line protocol. Kafka connectors pause.',
  },
  'security.strict': {
    type: 'boolean',
    initial: 'false',
    says: 'Do not start while somebody could come in without credentials or with the default ones, from another machine.',
  },
} as const satisfies SettingsTable
