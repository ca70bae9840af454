//! Gets a URL with reqwest and prints the body: `call native-tls|rustls URL`.

use reqwest::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let builder = match arguments.next().as_deref() {
        Some("native-tls") => Client::builder().use_native_tls(),
        Some("rustls") => Client::builder().use_rustls_tls(),
        other => return Err(format!("{other:?} is neither native-tls nor rustls").into()),
    };
    let url = arguments.next().ok_or("a URL is missing")?;
    print!("{}", builder.build()?.get(url).send()?.error_for_status()?.text()?);
    Ok(())
}
