/**
 * Finds the token endpoint in an issuer's metadata (OpenID Connect Discovery 1.0 §4, RFC 8414 §3). The document decides where
 * secrets go, so it is trusted no further than the issuer's own address.
 */

import { formats } from '../../config/values.ts';
import { parseObject } from '../../platform/json-object.ts';
import { redactedUrl } from '../../platform/log/redacted-text.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { ProviderResponse } from './provider-request.ts';

/** The message may be shown. */
export class UndiscoveredProvider extends Error {
  /** `unavailable` if asking again soon may help. */
  readonly result: 'unavailable' | 'invalid_response';

  constructor(result: UndiscoveredProvider['result'], message: string) {
    super(message);
    this.result = result;
  }
}

interface Discovery {
  /**
   * Kept for an hour, less if doubted, and longer if the issuer then fails.
   * @param get its errors are rethrown while no metadata is known.
   * @throws {UndiscoveredProvider} while no metadata is known.
   */
  metadata(get: (url: URL) => Promise<ProviderResponse>): Promise<IssuerMetadata>;
  known(): IssuerMetadata | undefined;
  /** Called after a grant that failed as if the endpoint had moved. */
  doubt(): void;
}

const FRESH_MS = 3600_000;
/** A provider that is away is not asked for metadata each time. */
const DOUBTED_FRESH_MS = 60_000;

export function discovery(expected: IssuerExpectation, clock: Clock): Discovery {
  let found: IssuerMetadata | undefined;
  let askedAtMs = 0;
  let freshMs = FRESH_MS;

  return {
    async metadata(get) {
      const nowMs = clock.monotonicMs();
      if (found !== undefined && nowMs - askedAtMs < freshMs) return found;
      askedAtMs = nowMs;
      freshMs = FRESH_MS;
      try {
        found = await lookUp(expected, get);
      } catch (error) {
        if (found === undefined) throw error;
        freshMs = DOUBTED_FRESH_MS;
      }
      return found;
    },
    known: () => found,
    doubt() {
      freshMs = DOUBTED_FRESH_MS;
    },
  };
}

async function lookUp(
  expected: IssuerExpectation,
  get: (url: URL) => Promise<ProviderResponse>,
): Promise<IssuerMetadata> {
  const refusals: string[] = [];
  for (const place of metadataUrls(expected.issuerUrl)) {
    const { status, body } = await get(new URL(place));
    if (status === 408 || status === 429 || status >= 500) {
      throw new UndiscoveredProvider('unavailable', `${place}: status ${status}`);
    }
    if (status !== 200) {
      refusals.push(`${place}: status ${status}`);
      continue;
    }
    const metadata = readIssuerMetadata(body, place, expected);
    if ('wrong' in metadata) {
      throw new UndiscoveredProvider('invalid_response', `the metadata at ${place} ${metadata.wrong}`);
    }
    return metadata;
  }
  throw new UndiscoveredProvider('invalid_response', `no metadata of the issuer: ${refusals.join(', ')}`);
}

export interface IssuerMetadata {
  readonly foundAt: string;
  readonly tokenUrl: string;
  /** `token_endpoint_auth_methods_supported`, or what its absence means (RFC 8414 §2). */
  readonly clientAuthentication: readonly string[];
  /** RFC 9449 §5.1. */
  readonly offersDpop: boolean;
}

interface IssuerExpectation {
  /** Compared letter by letter. */
  readonly issuerUrl: string;
  /** Its requests go to the mTLS endpoint, if there is one (RFC 8705 §5). */
  readonly showsCertificate: boolean;
  /** Secrets may travel over http to another machine. */
  readonly permitsClearText: boolean;
}

function metadataUrls(issuerUrl: string): readonly string[] {
  const { origin, pathname } = new URL(issuerUrl);
  const path = pathname.replace(/\/+$/, '');
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
}

/** @returns the metadata, or what is wrong with it, as a clause that repeats at most a URL of it. */
function readIssuerMetadata(
  body: string,
  foundAt: string,
  expected: IssuerExpectation,
): IssuerMetadata | { readonly wrong: string } {
  const { issuerUrl, showsCertificate } = expected;
  const fields = parseObject(body);
  if (fields === undefined) return { wrong: 'is no JSON object' };
  const { issuer } = fields;
  if (issuer !== issuerUrl) {
    return {
      wrong: `is that of the issuer ${urlForMessage(issuer)}, not of ${issuerUrl}: issuerUrl has to be the same`,
    };
  }
  const aliases = fields['mtls_endpoint_aliases'];
  const alias = showsCertificate && isObject(aliases) ? aliases['token_endpoint'] : undefined;
  const tokenUrl = alias ?? fields['token_endpoint'];
  if (tokenUrl === undefined) return { wrong: 'names no token_endpoint' };
  const wrong = wrongEndpoint(tokenUrl, expected);
  if (wrong !== undefined) return { wrong: `names the token_endpoint ${urlForMessage(tokenUrl)}: ${wrong}` };
  return {
    foundAt,
    tokenUrl: tokenUrl as string,
    clientAuthentication: methodsOf(fields),
    offersDpop: lists(fields['dpop_signing_alg_values_supported']),
  };
}

function lists(values: unknown): boolean {
  return Array.isArray(values) && values.length > 0;
}

const MAX_URL_LENGTH = 2048;

/** Undefined if secrets may go there. */
function wrongEndpoint(
  tokenUrl: unknown,
  { issuerUrl, permitsClearText }: IssuerExpectation,
): string | undefined {
  if (typeof tokenUrl !== 'string' || tokenUrl.length > MAX_URL_LENGTH || /[\s\\]/.test(tokenUrl))
    return 'it is no URL';
  const url = URL.canParse(tokenUrl) ? new URL(tokenUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'it is no http or https URL';
  if (url.username !== '' || url.password !== '') return 'it has credentials in it';
  if (url.hash !== '') return 'it has a fragment';
  const issuer = new URL(issuerUrl);
  if (url.protocol === 'http:' && issuer.protocol === 'https:') return 'it is not https, as the issuer is';
  // On this machine http needs no permission.
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && !permitsClearText)
    return 'it is not https: allowInsecureTokenUrl permits http';
  if (isLoopbackHost(url.hostname) && !isLoopbackHost(issuer.hostname))
    return 'it is this machine, and the issuer is not';
  return undefined;
}

function methodsOf(fields: Readonly<Record<string, unknown>>): readonly string[] {
  const methods = fields['token_endpoint_auth_methods_supported'];
  if (!Array.isArray(methods)) return ['client_secret_basic'];
  return methods.filter((method): method is string => typeof method === 'string');
}

function urlForMessage(value: unknown): string {
  if (typeof value !== 'string' || value.length > 200) return '(no URL)';
  const url = formats.tokenEndpointUrl.parse(value);
  return url === undefined ? '(no plain URL)' : url.search === '' ? value : redactedUrl(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
