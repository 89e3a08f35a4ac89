use std::time::Instant;
fn main() {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    rt.block_on(async {
        let client = leasehold::Client::connect("redis://127.0.0.1:7399").await.unwrap();
        client.lock("a").await.unwrap().release().await.unwrap();
        let t = Instant::now();
        for _ in 0..2000 { client.lock("a").await.unwrap().release().await.unwrap(); }
        println!("async pair {:?}", t.elapsed()/2000);
    });
}
