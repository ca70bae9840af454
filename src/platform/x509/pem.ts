import { X509Certificate } from 'node:crypto';

/** The certificates of a bundle, complete or not, without the text between them (RFC 7468 §2). */
export function blocksOf(bundle: string): string[] {
  const [, ...begun] = bundle.split(/^-----BEGIN CERTIFICATE-----[ \t]*\r?$/m);
  return begun.map((rest) => {
    const end = rest.search(/^-----END CERTIFICATE-----/m);
    const text = end < 0 ? rest : `${rest.slice(0, end)}-----END CERTIFICATE-----\n`;
    return `-----BEGIN CERTIFICATE-----${text}`;
  });
}

/** @param most the number that is parsed. */
export function certificatesIn(bundle: string, most = Number.POSITIVE_INFINITY): X509Certificate[] {
  return blocksOf(bundle)
    .slice(0, most)
    .flatMap((block) => {
      try {
        return [new X509Certificate(block)];
      } catch {
        return [];
      }
    });
}

/** The bundle as given, or what is wrong with it. */
export function parseAuthorities(pem: string): { readonly pem: string } | string {
  const blocks = blocksOf(pem);
  if (blocks.length === 0) return 'it holds no PEM certificate';
  try {
    const others = blocks.filter((block) => !new X509Certificate(block).ca);
    return others.length === 0 ? { pem } : 'it holds a certificate that is not of a CA';
  } catch {
    return 'it holds a PEM certificate that cannot be read';
  }
}

/** A mark of the sidecar's start follows. Roots with another mark are from earlier starts. */
export const INTERCEPTION_ROOT = 'token-sidecar root';
