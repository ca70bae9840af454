/** Common mistakes about providers. */

import type { CredentialConfig } from '../config/config.ts';
import { parseObject } from '../platform/json-object.ts';
import { datesProof } from '../token/client/client-authentication.ts';
import { readProviderError } from '../token/provider/provider-error.ts';
import type { ProviderResponse } from '../token/provider/provider-request.ts';

/** A remedy never contains the secret. */
interface GrantCase {
  readonly url: URL;
  readonly config: CredentialConfig;
  /** Undefined if no answer came. */
  readonly refusal?: Refusal | undefined;
  readonly client?: { readonly id?: string | undefined; readonly secret?: string | undefined };
  /** How far this machine's clock is ahead of the provider's. */
  readonly skewMs?: number | undefined;
  /** Those in the provider's metadata. */
  readonly offered?: readonly string[] | undefined;
}

/** Its text may repeat a secret and is not shown. */
interface Refusal {
  readonly status: number;
  readonly mediaType: string;
  /** RFC 6749 §5.2. */
  readonly error?: string | undefined;
  readonly description?: string | undefined;
}

export function refusalIn({
  status,
  contentType,
  body,
}: Pick<ProviderResponse, 'status' | 'contentType' | 'body'>): Refusal {
  const said = readProviderError(parseObject(body));
  const mediaType = contentType.replace(/;.*/s, '').trim().toLowerCase();
  return { status, mediaType, error: said?.code, description: said?.description };
}

interface Mistake {
  readonly name: string;
  /** A clause. */
  readonly remedy: string;
}

interface KnownMistake {
  readonly name: string;
  readonly byUrl?: true;
  /** Undefined for other cases. */
  remedy(found: GrantCase): string | undefined;
}

const REALM_PATH = /^(?<base>.*?)\/realms\/(?<realm>[^/]+)\/protocol\/openid-connect\/token$/;

function isRejected(refusal: Refusal | undefined): boolean {
  return refusal?.status === 401 || hasError(refusal, 'invalid_client', 'unauthorized_client');
}

function hasError(refusal: Refusal | undefined, ...codes: readonly string[]): boolean {
  return refusal?.error !== undefined && codes.includes(refusal.error);
}

/** The first match is reported. */
const KNOWN: readonly KnownMistake[] = [
  {
    name: 'token endpoint in the base URL',
    byUrl: true,
    remedy: ({ url }) =>
      /token(?:\.oauth2)?\/realms\//.test(url.pathname)
        ? 'the base URL is a whole token endpoint: give it as tokenUrl (--token-url) in place of authUrl'
        : undefined,
  },
  {
    name: 'realm in the base URL',
    byUrl: true,
    remedy({ url }) {
      const inner = /^(.*?)\/realms\/([^/]+)\/.*?realms\//.exec(url.pathname);
      return inner === null
        ? undefined
        : `the base URL ends before /realms: set it to ${url.origin}${inner[1]}, and realm to ${inner[2]}`;
    },
  },
  {
    name: 'metadata in place of the token endpoint',
    byUrl: true,
    remedy({ url }) {
      const [, base] = /^(.*)\/\.well-known\//.exec(url.pathname) ?? [];
      return base === undefined
        ? undefined
        : `that is the metadata of an issuer: set issuerUrl to ${url.origin}${base} in place of tokenUrl`;
    },
  },
  {
    name: 'issuer in place of the token endpoint',
    byUrl: true,
    remedy: ({ url, config }) =>
      config.issuerUrl === undefined && /\/realms\/[^/]+\/?$/.test(url.pathname)
        ? 'that is the URL of a realm: set it as issuerUrl, or set authUrl and realm'
        : undefined,
  },
  {
    name: 'login page in place of the token endpoint',
    byUrl: true,
    remedy: ({ url }) =>
      /\/(?:authorize|auth|login|console)\/?$/.test(url.pathname)
        ? 'that is where people sign in: the token endpoint of most providers ends in /token'
        : undefined,
  },
  {
    name: 'realm that there is not',
    remedy({ url, refusal }) {
      const { realm } = REALM_PATH.exec(url.pathname)?.groups ?? {};
      const said = [refusal?.error, refusal?.description];
      return realm !== undefined && said.some((text) => /Realm does not exist/i.test(text ?? ''))
        ? `the provider has no realm ${realm}: set realm (dx unless it is set)`
        : undefined;
    },
  },
  {
    name: 'realm or base URL that there is not',
    remedy({ url, refusal }) {
      const { base, realm } = REALM_PATH.exec(url.pathname)?.groups ?? {};
      if (base === undefined || refusal?.status !== 404) return undefined;
      return base.endsWith('/auth')
        ? `check the realm, ${realm}; Keycloak from 17 on has no /auth in its URLs unless it is told to`
        : `check the realm, ${realm}; Keycloak before 17 has /auth before /realms`;
    },
  },
  {
    name: 'redirect',
    remedy: ({ url, refusal }) =>
      refusal !== undefined && refusal.status >= 300 && refusal.status < 400
        ? `${url.origin} sends elsewhere, where secrets do not follow: write the URL that it leads to`
        : undefined,
  },
  {
    name: 'page in place of a token',
    remedy: ({ refusal }) =>
      refusal !== undefined && refusal.status < 300 && refusal.mediaType === 'text/html'
        ? 'a web page answers there: check the path of the URL, and whether a login or a proxy stands in between'
        : undefined,
  },
  {
    name: 'id in place of the secret',
    remedy: ({ url, client, refusal }) =>
      isEntra(url) && isRejected(refusal) && IS_UUID.test(client?.secret ?? '')
        ? "Entra ID shows an id beside each secret: client_secret must be the secret's value"
        : undefined,
  },
  {
    name: 'client_id in place of the secret',
    remedy: ({ client, refusal }) =>
      isRejected(refusal) && client?.secret !== undefined && client.secret === client.id
        ? 'client_id and client_secret hold the same value'
        : undefined,
  },
  {
    name: 'Base64 twice',
    remedy: ({ client, refusal }) =>
      isRejected(refusal) && [client?.secret, client?.id].some(isEncodedText)
        ? 'a mounted value is itself Base64: under data: it is encoded once, under stringData: not at all'
        : undefined,
  },
  {
    name: 'client authentication that is not offered',
    remedy({ offered, config, refusal }) {
      const { method } = config.clientAuth;
      const isOffered = offered === undefined || offered.length === 0 || offered.includes(method);
      const other = ['client_secret_post', 'client_secret_basic'].find((one) => offered?.includes(one));
      return isRejected(refusal) && !isOffered && other !== undefined && method.startsWith('client_secret')
        ? `set clientAuth: ${other}`
        : undefined;
    },
  },
  {
    name: 'encoding of Basic',
    remedy({ config: { clientAuth }, client, refusal }) {
      if (
        clientAuth.method !== 'client_secret_basic' ||
        !(refusal?.status === 401 || hasError(refusal, 'invalid_client'))
      )
        return undefined;
      const isChanged = [client?.id, client?.secret].some((part) => /[^A-Za-z0-9_.~*-]/.test(part ?? ''));
      const other = clientAuth.encoding === 'form' ? 'raw' : 'form';
      return isChanged
        ? `id or secret has characters that the encoding changes: if both are right, set basicEncoding: ${other}`
        : undefined;
    },
  },
  {
    name: 'clock',
    remedy: ({ skewMs, config, refusal }) =>
      skewMs !== undefined &&
      Math.abs(skewMs) > 5000 &&
      (datesProof(config.clientAuth) || config.grant?.type === 'jwt_bearer') &&
      hasError(refusal, 'invalid_client', 'invalid_grant', 'invalid_request')
        ? "the assertion is dated by a clock that is not the provider's: set the clock of the node"
        : undefined,
  },
  {
    name: 'grant that is not allowed',
    // Keycloak also says unauthorized_client of a wrong secret.
    remedy: ({ refusal }) =>
      hasError(refusal, 'unauthorized_client', 'unsupported_grant_type') &&
      !/invalid client|\bcredentials|secret/i.test(refusal?.description ?? '')
        ? 'allow the client this grant at the provider (Keycloak: Service accounts roles; Okta: Client Credentials)'
        : undefined,
  },
  {
    name: 'scope of Entra ID',
    remedy: ({ url, config, refusal }) =>
      isEntra(url) &&
      hasError(refusal, 'invalid_scope', 'invalid_request') &&
      !/\/\.default$/.test(config.scope ?? '')
        ? 'set scope to the application id URI of the API with /.default at its end, such as api://orders/.default'
        : undefined,
  },
  {
    name: 'audience of Auth0',
    remedy: ({ url, config, refusal }) =>
      url.hostname.endsWith('.auth0.com') &&
      config.audience === undefined &&
      (refusal?.status === 403 || hasError(refusal, 'access_denied', 'invalid_request'))
        ? 'set audience to the identifier of the API'
        : undefined,
  },
];

const IS_UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function isEntra({ hostname }: URL): boolean {
  return /^login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn|windows\.net)$/.test(hostname);
}

/** Generated secrets do not decode to text. */
function isEncodedText(value: string | undefined): boolean {
  if (value === undefined || value.length < 8 || value.length % 4 !== 0) return false;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
  return /^[\x20-\x7e]+\n?$/.test(Buffer.from(value, 'base64').toString('latin1'));
}

export function mistakeInUrl(found: Pick<GrantCase, 'url' | 'config'>): Mistake | undefined {
  return firstOf(
    KNOWN.filter(({ byUrl }) => byUrl === true),
    found,
  );
}

export function mistakeOf(found: GrantCase): Mistake | undefined {
  return firstOf(KNOWN, found);
}

function firstOf(known: readonly KnownMistake[], found: GrantCase): Mistake | undefined {
  for (const { name, remedy } of known) {
    const what = remedy(found);
    if (what !== undefined) return { name, remedy: what };
  }
  return undefined;
}
