/** Blocks that no test can run or check, each with the reason. */

import type { Block } from './blocks.ts';

export interface Exemption {
  readonly file: string;
  /** How its text begins. */
  readonly begins: string;
  readonly reason: string;
}

export const EXEMPTIONS: readonly Exemption[] = [
  { file: 'README.md', begins: ' app container ──HTTP──▶', reason: 'a picture' },
  { file: 'CONTRIBUTING.md', begins: 'src/\n', reason: 'a picture of the folders' },
  {
    file: 'docs/reference/check.md',
    begins: 'credential shop',
    reason: 'output of check, held to it by test/check/sample.test.ts',
  },
  {
    file: 'docs/reference/injector.md',
    begins: '# --admission-control-config-file',
    reason:
      'a file of the API server, for which no schema is published; test/cluster runs one with such a file',
  },
  {
    file: 'docs/reference/injector.md',
    begins: '# /etc/kubernetes/webhooks.kubeconfig',
    reason: 'a kubeconfig, for which no schema is published',
  },
  {
    file: 'charts/token-sidecar/README.md',
    begins: "rules:\n  - seriesQuery: '{__name__=~",
    reason: 'settings of the Prometheus adapter, for which no schema is published',
  },
  {
    file: 'docs/how-to/share-tokens.md',
    begins: 'user token-sidecar on ',
    reason: 'a line of the ACL file of Valkey or Redis; test/e2e/token-cache runs one with these rights',
  },
];

export function exemptionOf({ file, text }: Pick<Block, 'file' | 'text'>): Exemption | undefined {
  return EXEMPTIONS.find((exemption) => exemption.file === file && text.startsWith(exemption.begins));
}
