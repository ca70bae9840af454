{{/*
What the API server is to trust, Base64 of PEM, so that no pod is lost while replicas still show a certificate of before.
A CA that the webhook of the cluster does not trust yet is put before those that it trusts; the next upgrade leaves them out.
Where somebody else writes the bundle (the injector, cert-manager), it stays as it is. Helm alone sees no cluster, and has its own CA only.
Arguments: root, own.
*/}}
{{- define "token-sidecar.injector.trustedBundle" -}}
{{- $live := "" -}}
{{- $found := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" (include "token-sidecar.injector.clusterName" .root) -}}
{{- range (default dict $found).webhooks -}}
{{-   if eq .name "inject.token-sidecar.dev" -}}
{{-     $live = default "" .clientConfig.caBundle -}}
{{-   end -}}
{{- end -}}
{{- if not .own -}}
{{-   $live -}}
{{- else if or (not $live) (contains (b64dec .own | trim) (b64dec $live)) -}}
{{-   .own -}}
{{- else -}}
{{-   $before := b64dec $live -}}
{{- /* Made anew at every upgrade, CAs would add up: the newest comes first. */ -}}
{{-   if gt (len $before) 8192 -}}
{{-     $before = regexFind "(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----" $before -}}
{{-   end -}}
{{-   printf "%s\n%s\n" (b64dec .own | trim) (trim $before) | b64enc -}}
{{- end -}}
{{- end -}}
