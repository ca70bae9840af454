/**
 * What an issuer's metadata says of its token endpoint (OpenID Connect Discovery 1.0 §4, RFC 8414 §3). Pure. The
 * document comes over the network and decides where secrets go, so it is trusted no further than the issuer's own
 * address.
 */

import { tokenEndpointUrl } from '../../config/values.ts';
import { shownUrl } from '../../platform/log/shown-text.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';
import { parseObject } from '../json-object.ts';

export interface IssuerMetadata {
  /** Where the document was found. */
  readonly foundAt: string;
  readonly tokenUrl: string;
  /** `token_endpoint_auth_methods_supported`, or what its absence means (RFC 8414 §2). */
  readonly clientAuthentication: readonly string[];
}

export interface IssuerExpectation {
  /** As configured; the document has to name it letter by letter. */
  readonly issuerUrl: string;
  /** The client shows a certificate: its requests go to the mTLS endpoint, if there is one (RFC 8705 §5). */
  readonly showsCertificate: boolean;
  /** Secrets may travel over http to another machine. */
  readonly permitsClearText: boolean;
}

/** Where to look, in this order. */
export function metadataUrls(issuerUrl: string): readonly string[] {
  const { origin, pathname } = new URL(issuerUrl);
  const path = pathname.replace(/\/+$/, '');
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
}

/** @returns the metadata, or what is wrong with the document, as a clause that repeats at most a URL of it. */
export function readIssuerMetadata(
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
      wrong: `is that of the issuer ${shownValue(issuer)}, not of ${issuerUrl}: issuerUrl has to be the same`,
    };
  }
  const aliases = fields['mtls_endpoint_aliases'];
  const alias = showsCertificate && isObject(aliases) ? aliases['token_endpoint'] : undefined;
  const tokenUrl = alias ?? fields['token_endpoint'];
  if (tokenUrl === undefined) return { wrong: 'names no token_endpoint' };
  const wrong = wrongEndpoint(tokenUrl, expected);
  if (wrong !== undefined) return { wrong: `names the token_endpoint ${shownValue(tokenUrl)}: ${wrong}` };
  return { foundAt, tokenUrl: tokenUrl as string, clientAuthentication: methodsOf(fields) };
}

const MAX_URL_LENGTH = 2048;

/** Why secrets must not go there; undefined if they may. */
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
  // An issuer on this machine needs no permission for http; others do.
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

/** What should be a URL, as far as it may be shown. */
function shownValue(value: unknown): string {
  if (typeof value !== 'string' || value.length > 200) return '(no URL)';
  const url = tokenEndpointUrl.parse(value);
  // Letter by letter, as an issuer is compared.
  return url === undefined ? '(no plain URL)' : url.search === '' ? value : shownUrl(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
