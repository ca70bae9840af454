/** The settings of profiles. `npm run generate` makes the custom resources' schemas. */

import * as v from 'valibot';
import { credential, output } from '../../config/credential-schema.ts';
import type { Fallbacks } from '../../config/file.ts';
import { allowedDestination, injection, route } from '../../config/file-schema.ts';
import { field } from '../../config/value-schemas.ts';
import { MODES } from '../pod/annotations.ts';

const OBJECT_NAME = 'a name of lower-case letters, digits, "-" and "."';
const objectName = v.pipe(
  v.string(OBJECT_NAME),
  v.regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, OBJECT_NAME),
  v.maxLength(253, OBJECT_NAME),
);

const KEY = 'a key of a Secret or ConfigMap: letters, digits, dots, dashes and underscores';
const key = v.pipe(v.string(KEY), v.regex(/^[A-Za-z0-9._-]{1,253}$/, KEY), v.maxLength(253, KEY));

const text = v.pipe(
  v.string('a string'),
  v.nonEmpty('a string that is not empty'),
  v.maxLength(4096, 'a string of at most 4096 characters'),
);

function listOf<const Item extends v.GenericSchema>(item: Item, most: number, what: string) {
  const expected = `a list of 1 to ${most} ${what}`;
  return v.pipe(v.array(item, expected), v.minLength(1, expected), v.maxLength(most, expected));
}

const reference = v.strictObject({ name: objectName, key: v.optional(key) }, 'a mapping');

const ONE_PLACE = 'either a configMap or a secret';
const authorities = v.pipe(
  v.strictObject({ configMap: v.optional(reference), secret: v.optional(reference) }, 'a mapping'),
  v.check(({ configMap, secret: from }) => (configMap === undefined) !== (from === undefined), ONE_PLACE),
);

const secret = v.strictObject(
  { name: objectName, keys: v.optional(v.record(field.fileName, key, 'a mapping of file names to keys')) },
  'a mapping',
);

const SECONDS = 'a whole number of seconds from 600 to 86400';
const serviceAccountToken = v.strictObject(
  {
    audience: text,
    expirationSeconds: v.optional(
      v.pipe(v.number(SECONDS), v.integer(SECONDS), v.minValue(600, SECONDS), v.maxValue(86_400, SECONDS)),
    ),
    file: v.optional(field.fileName),
  },
  'a mapping',
);

const serverTls = { serverName: v.optional(text), ca: v.optional(authorities) };

/** A Secret in place of the directory. */
const egressProxy = v.optional(
  v.strictObject(
    {
      url: text,
      secret: v.optional(objectName),
      noProxy: v.optional(listOf(text, 100, 'hosts')),
    },
    'a mapping',
  ),
);

/** A file has only a name: all are in one directory. */
const profileOutput = v.strictObject(
  {
    file: v.optional(field.fileName),
    mode: output.entries.mode,
    group: output.entries.group,
    endpoint: output.entries.endpoint,
  },
  'a mapping',
);

const VIA = ['sidecar', 'broker'] as const;

const file = credential.entries;
const profileCredential = v.strictObject(
  {
    name: v.optional(file.name),
    via: v.optional(v.picklist(VIA, `one of ${VIA.join(', ')}`)),
    secret: v.optional(secret),
    serviceAccountToken: v.optional(serviceAccountToken),
    authUrl: file.authUrl,
    realm: file.realm,
    tokenUrl: file.tokenUrl,
    issuerUrl: file.issuerUrl,
    allowInsecureTokenUrl: file.allowInsecureTokenUrl,
    clientId: file.clientId,
    clientAuth: file.clientAuth,
    basicEncoding: file.basicEncoding,
    assertion: file.assertion,
    grant: file.grant,
    jwtBearer: file.jwtBearer,
    tokenExchange: file.tokenExchange,
    static: file.static,
    tokenType: file.tokenType,
    proofOfPossession: file.proofOfPossession,
    dpop: file.dpop,
    required: file.required,
    scope: file.scope,
    audience: file.audience,
    // A Kubernetes schema allows one type per value.
    parameters: v.optional(
      v.record(v.string(), listOf(text, 32, 'values'), 'a mapping of parameter names to lists of values'),
    ),
    tls: v.optional(v.strictObject(serverTls, 'a mapping')),
    egressProxy,
    output: v.optional(profileOutput),
    timeouts: file.timeouts,
    renewal: file.renewal,
  },
  'a mapping',
);

const upstreamTls = v.optional(
  v.strictObject({ ...serverTls, clientCertificate: v.optional(objectName) }, 'a mapping'),
);

const places = v.optional(listOf(injection, 8, 'places in a request'));

const profileRoute = v.strictObject(
  {
    name: v.optional(route.entries.name),
    match: route.entries.match,
    upstream: route.entries.upstream.wrapped,
    stripPrefix: route.entries.stripPrefix,
    protocol: route.entries.protocol,
    credential: route.entries.credential,
    inject: places,
    existingAuthorization: route.entries.existingAuthorization,
    whenTokenUnavailable: route.entries.whenTokenUnavailable,
    retryOn401: route.entries.retryOn401,
    timeouts: route.entries.timeouts,
    tls: upstreamTls,
    egressProxy,
  },
  'a mapping',
);

const destination = allowedDestination.entries;
const profileHost = v.strictObject(
  {
    host: destination.host,
    port: destination.port,
    allowClearText: destination.allowClearText,
    protocol: destination.protocol,
    credential: destination.credential,
    inject: places,
    existingAuthorization: destination.existingAuthorization,
    whenTokenUnavailable: destination.whenTokenUnavailable,
    retryOn401: destination.retryOn401,
    timeouts: destination.timeouts,
    tls: upstreamTls,
    egressProxy,
  },
  'a mapping',
);

const MODE = `one of ${MODES.default.join(', ')}`;

const profile = {
  credentials: listOf(profileCredential, 16, 'credentials'),
  routes: v.optional(listOf(profileRoute, 64, 'routes')),
  hosts: v.optional(listOf(profileHost, 100, 'hosts')),
  mode: v.optional(v.picklist(MODES.default, MODE)),
  imagePullSecrets: v.optional(listOf(objectName, 8, 'names of Secrets')),
};

const OPERATOR = 'In, NotIn, Exists or DoesNotExist';
const VALUES = 'values with the operators In and NotIn, and none with Exists and DoesNotExist';
const labelSelector = v.strictObject(
  {
    matchLabels: v.optional(v.record(text, v.string('a string'), 'a mapping of labels to values')),
    matchExpressions: v.optional(
      listOf(
        v.pipe(
          v.strictObject(
            {
              key: text,
              operator: v.picklist(['In', 'NotIn', 'Exists', 'DoesNotExist'], OPERATOR),
              values: v.optional(listOf(v.string('a string'), 64, 'values')),
            },
            'a mapping',
          ),
          v.forward(
            v.check(
              ({ operator, values }) => ['In', 'NotIn'].includes(operator) === (values !== undefined),
              VALUES,
            ),
            ['values'],
          ),
        ),
        16,
        'expressions',
      ),
    ),
  },
  'a mapping',
);

export const profileSchema = v.strictObject(profile, 'a mapping');

export const clusterProfileSchema = v.strictObject(
  {
    namespaces: v.optional(
      v.strictObject(
        {
          names: v.optional(listOf(objectName, 256, 'names of namespaces')),
          selector: v.optional(labelSelector),
        },
        'a mapping',
      ),
    ),
    serviceAccounts: v.optional(listOf(objectName, 256, 'names of service accounts')),
    ...profile,
  },
  'a mapping',
);

/** Stands in for a required setting that is missing or not understood, so that the rest can be judged. */
export const FALLBACKS: Fallbacks = {
  'secret.name': () => 'not-understood',
  'configMap.name': () => 'not-understood',
  'serviceAccountToken.audience': () => 'not-understood',
  'egressProxy.url': () => 'http://not-understood.invalid',
  'routes[].upstream': () => 'https://not-understood.invalid',
  'hosts[].host': (index) => `not-understood-${index}.invalid`,
};

/** As written: durations and URLs are text. */
export type ProfileSpec = v.InferInput<typeof profileSchema>;
