/** Without limits, a tenant who cannot read a Secret could have it sent to a server of their own. */

import type { ValueFormat } from '../../config/values.ts';

export interface AllowLists {
  /** They may get the client secret. */
  readonly authHosts?: readonly string[];
  /** They may get access tokens. */
  readonly upstreamHosts?: readonly string[];
  readonly images?: readonly string[];
  /** Each may set all of the above; `*` for any. */
  readonly configMaps?: readonly string[];
}

/** `example.com`, `example.com:8443` or `*.example.com`, for TLS; in clear text only as `http://example.com`. */
export const allowedHost: ValueFormat<string> = {
  expected:
    'hosts such as sso.example.com, sso.example.com:8443, *.example.com or, in clear text, http://api:8080, by commas',
  parse: (text) =>
    text.length <= 300 && /^(http:\/\/)?(\*\.)?[a-z0-9_]([a-z0-9._-]*[a-z0-9])?(:\d{1,5})?$/i.test(text)
      ? text.toLowerCase()
      : undefined,
};

/** A repository, or a prefix that ends in a slash. */
export const allowedImage: ValueFormat<string> = {
  expected: 'images without tag, or prefixes that end in "/", such as ghcr.io/token-sidecar/, by commas',
  parse: (text) =>
    /^[A-Za-z0-9][A-Za-z0-9._/:-]{0,500}$/.test(text) && !/:[^/]*$/.test(text) ? text : undefined,
};

const CLEAR = 'http://';

/**
 * `*.` stands for one label or more. Without TLS a name proves nothing, since a pod's `hostAliases` say where it leads, so clear
 * text must be listed as such.
 */
export function isAllowedHost(url: string, list: readonly string[] | undefined): boolean {
  if (list === undefined) return true;
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, port } = new URL(url);
  // A name with a trailing dot is the same host.
  const host = hostname.replace(/\.$/, '');
  const isClear = protocol === 'http:';
  const standard = isClear ? '80' : '443';
  const authority = `${host}:${port || standard}`;
  return list.some((entry) => {
    if (entry.startsWith(CLEAR) !== isClear) return false;
    const listed = entry.replace(CLEAR, '');
    const pattern = /:\d+$/.test(listed) ? listed : `${listed}:${standard}`;
    return pattern.startsWith('*.') ? authority.endsWith(pattern.slice(1)) : authority === pattern;
  });
}

/** Compared as written. If hosts are limited, an image must be listed, since it can send what it reads anywhere. */
export function isAllowedImage(image: string, lists: AllowLists): boolean {
  const { images } = lists;
  if (images === undefined) return !limitsHosts(lists);
  const repository = image.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
  if (repository.split('/').some((part) => part === '' || part === '.' || part === '..')) return false;
  return images.some((entry) => (entry.endsWith('/') ? repository.startsWith(entry) : repository === entry));
}

/** If hosts are limited, a ConfigMap must be listed, since it could name any host. */
export function isAllowedConfigMap(name: string, lists: AllowLists): boolean {
  const { configMaps } = lists;
  if (configMaps === undefined) return !limitsHosts(lists);
  return configMaps.includes('*') || configMaps.includes(name);
}

export function limitsHosts({ authHosts, upstreamHosts }: AllowLists): boolean {
  return authHosts !== undefined || upstreamHosts !== undefined;
}

export function limitsAnything(lists: AllowLists): boolean {
  return Object.keys(lists).length > 0;
}
